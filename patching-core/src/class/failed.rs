use super::erase::{DynMapper, DynVisitor};
use super::module_class::ModuleClass;
use super::slot::{Erased, Identity};
use burn::module::{Content, Devices, DisplaySettings};
use burn::tensor::Device;
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

/// Stands in the slots of a class whose `#[module_class]` reported an error.
///
/// The compiler then checks calls of such a slot against the struct's own methods, and nothing is reported twice. No
/// value of it exists: the program does not compile.
pub struct Failed<C> {
    never: std::convert::Infallible,
    class: PhantomData<fn() -> C>,
}

impl<C> Deref for Failed<C> {
    type Target = C;
    fn deref(&self) -> &C {
        match self.never {}
    }
}

impl<C: ModuleClass<Interface = Self>> Erased<C> for Failed<C> {
    fn any(&self) -> &dyn Any {
        match self.never {}
    }
    fn identity(&self) -> Identity {
        match self.never {}
    }
    fn boxed(&self) -> Box<Self> {
        match self.never {}
    }
    fn debug(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.never {}
    }
    fn visit(&self, _: &mut dyn DynVisitor) {
        match self.never {}
    }
    fn map(self: Box<Self>, _: &mut dyn DynMapper) -> Box<Self> {
        match self.never {}
    }
    fn to_device(self: Box<Self>, _: &Device) -> Box<Self> {
        match self.never {}
    }
    fn fork(self: Box<Self>, _: &Device) -> Box<Self> {
        match self.never {}
    }
    fn train(self: Box<Self>) -> Box<Self> {
        match self.never {}
    }
    fn materialize(self: Box<Self>) -> Box<Self> {
        match self.never {}
    }
    fn valid(&self) -> Box<Self> {
        match self.never {}
    }
    fn devices(&self, _: Devices) -> Devices {
        match self.never {}
    }
    fn num_params(&self) -> usize {
        match self.never {}
    }
    fn format(&self, _: DisplaySettings) -> String {
        match self.never {}
    }
    fn content(&self, _: Content) -> Option<Content> {
        match self.never {}
    }
}
