//! What is replaced is a module class.
mod parts;
use burn::nn::Linear;
use parts::*;

#[derive(Module, Debug)]
struct OfALayer;
#[replaces(Linear)]
impl OfALayer {
    fn new(_init: &Init) -> Self {
        Self
    }
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        x
    }
}

#[derive(Module, Debug)]
struct OfATypo;
#[replaces(Atention)]
impl OfATypo {
    fn new(_init: &Init) -> Self {
        Self
    }
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        x
    }
}

fn main() {}
