//! What `#[replaces(…)]` takes, and what it is written on.
mod parts;
use parts::*;

#[derive(Module, Debug)]
struct OfNothing;
#[replaces]
impl OfNothing {
    fn new(_init: &Init) -> Self {
        Self
    }
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        x
    }
}

#[derive(Module, Debug)]
struct OfText;
#[replaces("Attention")]
impl OfText {
    fn new(_init: &Init) -> Self {
        Self
    }
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        x
    }
}

#[derive(Module, Debug)]
struct Twice;
#[replaces(Plain, Plain)]
impl Twice {
    fn new(_init: &Init) -> Self {
        Self
    }
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        x
    }
}

#[replaces(Plain)]
struct OnAStruct;

#[derive(Module, Debug)]
struct Incomplete;
#[replaces(Plain)]
impl Incomplete {
    fn forward(x: Tensor<2>) -> Tensor<2> {
        x
    }
}

#[derive(Module, Debug)]
struct Qualified;
#[replaces(Plain)]
impl Qualified {
    fn new(&self, _init: &Init) -> Self {
        Self
    }
    async fn forward(&mut self, x: Tensor<2>) -> Tensor<2> {
        x
    }
}

#[derive(Module, Debug)]
struct Plain;
#[module_class]
impl Plain {
    fn new(_init: &Init) -> Self {
        Self
    }
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        x
    }
}

fn main() {}
