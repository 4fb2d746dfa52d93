//! What `new` takes and returns.
mod parts;
use parts::*;

#[derive(Module, Debug)]
struct WithoutInit;
#[module_class]
impl WithoutInit {
    fn new(_config: &Config) -> Self {
        Self
    }
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        x
    }
}

#[derive(Module, Debug)]
struct TwoInits;
#[module_class]
impl TwoInits {
    fn new(_one: &Init, _other: &Init) -> Self {
        Self
    }
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        x
    }
}

#[derive(Module, Debug)]
struct OwnedInit;
#[module_class]
impl OwnedInit {
    fn new(_init: Init) -> Self {
        Self
    }
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        x
    }
}

#[derive(Module, Debug)]
struct Fallible;
#[module_class]
impl Fallible {
    fn new(_init: &Init) -> Result<Self, String> {
        Ok(Self)
    }
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        x
    }
}

#[derive(Module, Debug)]
struct Nothing;
#[module_class]
impl Nothing {
    fn new(_init: &Init) {}
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        x
    }
}

fn main() {}
