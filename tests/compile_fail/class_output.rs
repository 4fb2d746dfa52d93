//! What `forward` may return.
mod parts;
use parts::*;

#[derive(Module, Debug)]
struct Borrowed;
#[module_class]
impl Borrowed {
    fn new(_init: &Init) -> Self {
        Self
    }
    fn forward<'a>(&self, x: &'a Tensor<2>) -> &'a Tensor<2> {
        x
    }
}

#[derive(Module, Debug)]
struct Nothing;
#[module_class]
impl Nothing {
    fn new(_init: &Init) -> Self {
        Self
    }
    fn forward(&self, _x: Tensor<2>) {}
}

#[derive(Module, Debug)]
struct Hidden;
#[module_class]
impl Hidden {
    fn new(_init: &Init) -> Self {
        Self
    }
    fn forward(&self, x: Tensor<2>) -> impl Clone {
        x
    }
}

#[derive(Module, Debug)]
struct Unrecordable;
#[module_class]
impl Unrecordable {
    fn new(_init: &Init) -> Self {
        Self
    }
    fn forward(&self, x: Tensor<2>) -> Vec<Tensor<2>> {
        vec![x]
    }
}

#[derive(Module, Debug)]
struct PartlyUnrecordable;
#[module_class]
impl PartlyUnrecordable {
    fn new(_init: &Init) -> Self {
        Self
    }
    fn forward(&self, x: Tensor<2>) -> (Tensor<2>, usize) {
        (x, 1)
    }
}

fn main() {}
