//! Functions that a slot cannot call.
mod parts;
use parts::*;

#[derive(Module, Debug)]
struct Async;
#[module_class]
impl Async {
    fn new(_init: &Init) -> Self {
        Self
    }
    async fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        x
    }
}

#[derive(Module, Debug)]
struct Unsafe;
#[module_class]
impl Unsafe {
    unsafe fn new(_init: &Init) -> Self {
        Self
    }
    extern "C" fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        x
    }
}

#[derive(Module, Debug)]
struct Conditional;
#[module_class]
impl Conditional {
    fn new(_init: &Init) -> Self {
        Self
    }
    #[cfg(all())]
    fn forward(&self, x: Tensor<2>, #[cfg(all())] _y: usize) -> Tensor<2> {
        x
    }
}

fn main() {}
