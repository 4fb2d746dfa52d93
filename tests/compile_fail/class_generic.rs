//! A slot decides at run time what it calls.
mod parts;
use parts::*;

#[derive(Module, Debug)]
struct Generic<const N: usize>;
#[module_class]
impl<const N: usize> Generic<N> {
    fn new(_init: &Init) -> Self {
        Self
    }
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        x
    }
}

#[derive(Module, Debug)]
struct GenericFunctions;
#[module_class]
impl GenericFunctions {
    fn new<T: Into<usize>>(_width: T, _init: &Init) -> Self {
        Self
    }
    fn forward<'a, 'b: 'a>(&self, x: &'a Tensor<2>, _y: &'b Tensor<2>) -> Tensor<2> {
        x.clone()
    }
}

#[derive(Module, Debug)]
struct Bounded;
#[module_class]
impl Bounded {
    fn new(_init: &Init) -> Self {
        Self
    }
    fn forward<'a, 'b>(&self, x: &'a Tensor<2>, _y: &'b Tensor<2>) -> Tensor<2>
    where
        'b: 'a,
    {
        x.clone()
    }
}

// nothing that uses them is reported too
#[derive(Module, Debug)]
struct Uses {
    functions: Slot<GenericFunctions>,
    bounded: Slot<Bounded>,
}
impl Uses {
    fn new(init: &Init) -> Self {
        Self { functions: GenericFunctions::slot(4usize, init), bounded: Bounded::slot(init) }
    }
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.bounded.forward(&self.functions.forward(&x, &x), &x)
    }
}

fn main() {
    let uses = Uses::new(&Init::new(&Device::default()));
    uses.forward(Tensor::zeros([1, 1], &Device::default()));
}
