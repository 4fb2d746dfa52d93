use super::erase::{DynMapper, DynVisitor, Outward};
use super::module_class::{Implements, ModuleClass};
use super::slot::{Erased, Identity};
use burn::module::{Content, Devices, DisplaySettings, Module, ModuleDisplay, ModuleDisplayDefault};
use burn::tensor::Device;
use std::any::{Any, TypeId, type_name};
use std::fmt;

/// Which slot, for as long as the model is borrowed: its address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SlotId(usize);

impl SlotId {
    #[inline(always)]
    pub(crate) fn of<T: ?Sized>(hooked: &T) -> Self {
        Self(std::ptr::from_ref(hooked).cast::<()>().addr())
    }
}

/// A module in a slot. Only this type implements the interface traits, so no call through a slot gets past its hook.
pub struct Hooked<M> {
    module: M,
    /// Never of size zero: two slots never share an address.
    _address: u8,
}

impl<M> Hooked<M> {
    pub(crate) fn new(module: M) -> Self {
        Self { module, _address: 0 }
    }

    #[doc(hidden)]
    #[inline]
    pub fn __module(&self) -> &M {
        &self.module
    }

    fn then<C: ModuleClass>(self, change: impl FnOnce(M) -> M) -> Box<C::Interface>
    where
        M: Implements<C>,
    {
        C::__boxed(Hooked::new(change(self.module)))
    }
}

impl<C: ModuleClass, M: Implements<C>> Erased<C> for Hooked<M> {
    fn any(&self) -> &dyn Any {
        &self.module
    }
    fn identity(&self) -> Identity {
        Identity { implementation: type_name::<M>(), implementation_id: TypeId::of::<M>(), id: SlotId::of(self) }
    }
    fn boxed(&self) -> Box<C::Interface> {
        C::__boxed(Hooked::new(self.module.clone()))
    }
    fn debug(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.module, f)
    }
    fn visit(&self, visitor: &mut dyn DynVisitor) {
        Module::visit(&self.module, &mut Outward(visitor));
    }
    fn map(self: Box<Self>, mapper: &mut dyn DynMapper) -> Box<C::Interface> {
        self.then(|module| Module::map(module, &mut Outward(mapper)))
    }
    fn to_device(self: Box<Self>, device: &Device) -> Box<C::Interface> {
        self.then(|module| Module::to_device(module, device))
    }
    fn fork(self: Box<Self>, device: &Device) -> Box<C::Interface> {
        self.then(|module| Module::fork(module, device))
    }
    fn train(self: Box<Self>) -> Box<C::Interface> {
        self.then(Module::train)
    }
    fn materialize(self: Box<Self>) -> Box<C::Interface> {
        self.then(Module::materialize)
    }
    fn valid(&self) -> Box<C::Interface> {
        C::__boxed(Hooked::new(Module::valid(&self.module)))
    }
    fn devices(&self, devices: Devices) -> Devices {
        Module::collect_devices(&self.module, devices)
    }
    fn num_params(&self) -> usize {
        Module::num_params(&self.module)
    }
    fn format(&self, settings: DisplaySettings) -> String {
        ModuleDisplay::format(&self.module, settings)
    }
    fn content(&self, content: Content) -> Option<Content> {
        ModuleDisplayDefault::content(&self.module, content)
    }
}
