//! Slots are copied by code of the caller, which may do what it likes.

use burn::module::{Content, Devices, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor};
use patching_core::class::{all_slots, slots};
use patching_core::prelude::*;

/// Looks at modules while it is copied.
#[derive(Debug)]
pub struct Curious {
    weight: Param<Tensor<1>>,
}

#[derive(Module, Debug)]
struct Pair {
    one: Slot<Curious>,
    two: Slot<Curious>,
}

#[module_class]
impl Curious {
    pub fn new(init: &Init) -> Self {
        Self { weight: Param::from_tensor(Tensor::zeros([1], init.device())) }
    }
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        x
    }
}

struct Nothing;
impl ModuleVisitor for Nothing {}

impl Clone for Curious {
    fn clone(&self) -> Self {
        let copy = Self { weight: self.weight.clone() };
        let slot = Slot::<Self>::of(copy);
        // none of this belongs to the walk that asked for the copy
        slot.visit(&mut Nothing);
        assert_eq!(all_slots(&slot).len(), 1);
        Self { weight: self.weight.clone() }
    }
}

impl Module for Curious {
    fn collect_devices(&self, devices: Devices) -> Devices {
        self.weight.collect_devices(devices)
    }
    fn fork(self, device: &Device) -> Self {
        Self { weight: self.weight.fork(device) }
    }
    fn to_device(self, device: &Device) -> Self {
        Self { weight: self.weight.to_device(device) }
    }
    fn train(self) -> Self {
        self
    }
    fn valid(&self) -> Self {
        self.clone()
    }
    fn materialize(self) -> Self {
        self
    }
    fn num_params(&self) -> usize {
        1
    }
    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        visitor.enter_module("weight", "Struct:Curious");
        self.weight.visit(visitor);
        visitor.exit_module("weight", "Struct:Curious");
    }
    fn map<M: ModuleMapper>(self, mapper: &mut M) -> Self {
        mapper.enter_module("weight", "Struct:Curious");
        let weight = Module::map(self.weight, mapper);
        mapper.exit_module("weight", "Struct:Curious");
        Self { weight }
    }
}

impl ModuleDisplayDefault for Curious {
    fn content(&self, content: Content) -> Option<Content> {
        Some(content)
    }
}

impl ModuleDisplay for Curious {}

#[test]
fn a_copy_may_walk_over_modules_itself() {
    let init = Init::new(&Device::flex());
    let pair = Pair { one: Curious::slot(&init), two: Curious::slot(&init) };
    let paths: Vec<_> = slots::<Curious, _>(&pair).into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["one", "two"]);
}
