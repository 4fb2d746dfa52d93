//! The constructor and the `forward` of a replacement are those of the class.
mod parts;
use parts::*;

#[derive(Module, Debug)]
struct Original;
#[module_class]
impl Original {
    fn new(_config: &Config, _layer_idx: usize, _init: &Init) -> Self {
        Self
    }
    fn forward(&self, x: Tensor<3>, _config: &Config) -> (Tensor<3>, Option<Tensor<4>>) {
        (x, None)
    }
}

#[derive(Module, Debug)]
struct OtherNew;
#[replaces(Original)]
impl OtherNew {
    fn new(_config: &Config, _init: &Init) -> Self {
        Self
    }
    fn forward(&self, x: Tensor<3>, _config: &Config) -> (Tensor<3>, Option<Tensor<4>>) {
        (x, None)
    }
}

#[derive(Module, Debug)]
struct OtherForward;
#[replaces(Original)]
impl OtherForward {
    fn new(_config: &Config, _layer_idx: usize, _init: &Init) -> Self {
        Self
    }
    fn forward(&self, x: Tensor<3>) -> (Tensor<3>, Option<Tensor<4>>) {
        (x, None)
    }
}

#[derive(Module, Debug)]
struct OtherOutput;
#[replaces(Original)]
impl OtherOutput {
    fn new(_config: &Config, _layer_idx: usize, _init: &Init) -> Self {
        Self
    }
    fn forward(&self, x: Tensor<3>, _config: &Config) -> (Tensor<3>, Option<Tensor<3>>) {
        (x, None)
    }
}

#[derive(Debug, Clone)]
struct NoModule;
#[replaces(Original)]
impl NoModule {
    fn new(_config: &Config, _layer_idx: usize, _init: &Init) -> Self {
        Self
    }
    fn forward(&self, x: Tensor<3>, _config: &Config) -> (Tensor<3>, Option<Tensor<4>>) {
        (x, None)
    }
}

fn main() {}
