//! Where `#[module_class]` belongs, and what the block holds.
mod parts;
use parts::*;

#[module_class]
struct NotABlock;

struct NotInherent;
#[module_class]
impl Clone for NotInherent {
    fn clone(&self) -> Self {
        Self
    }
}

#[derive(Module, Debug)]
struct WithoutForward;
#[module_class]
impl WithoutForward {
    fn new(_init: &Init) -> Self {
        Self
    }
}

#[derive(Module, Debug)]
struct WithoutNew;
#[module_class]
impl WithoutNew {
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        x
    }
}

#[derive(Module, Debug)]
struct WithArguments;
#[module_class(name = "Other")]
impl WithArguments {
    fn new(_init: &Init) -> Self {
        Self
    }
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        x
    }
}

fn main() {}
