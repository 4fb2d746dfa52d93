//! What `forward` may take.
mod parts;
use parts::*;

#[derive(Module, Debug)]
struct ImplTrait;
#[module_class]
impl ImplTrait {
    fn new(_width: impl Into<usize>, _init: &Init) -> Self {
        Self
    }
    fn forward(&self, x: Tensor<2>, _mask: Option<&impl Fn(usize) -> bool>) -> Tensor<2> {
        x
    }
}

#[derive(Module, Debug)]
struct Mutable;
#[module_class]
impl Mutable {
    fn new(_init: &Init) -> Self {
        Self
    }
    fn forward(&mut self, x: Tensor<2>) -> Tensor<2> {
        x
    }
}

#[derive(Module, Debug)]
struct Associated;
#[module_class]
impl Associated {
    fn new(&self, _init: &Init) -> Self {
        Self
    }
    fn forward(x: Tensor<2>) -> Tensor<2> {
        x
    }
}

fn main() {}
