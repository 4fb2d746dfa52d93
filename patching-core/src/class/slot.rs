use super::edit::edited_slot;
use super::erase::{DynMapper, DynVisitor, Inward};
use super::hooked::{Hooked, SlotId};
use super::module_class::{Implements, ModuleClass};
use super::walk::{self, SlotInfo};
use crate::capture::ModuleOutput;
use burn::module::{
    Content, Devices, DisplaySettings, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor,
};
use burn::tensor::Device;
use std::any::{Any, TypeId};
use std::fmt;
use std::ops::Deref;

/// What is in a slot, and which slot it is.
#[doc(hidden)]
pub struct Identity {
    pub(crate) implementation: &'static str,
    pub(crate) implementation_id: TypeId,
    pub(crate) id: SlotId,
}

/// Burn's `Module` without its generic methods: the supertrait of every interface, so that a slot is one box and a
/// call one indirect call.
pub trait Erased<C: ModuleClass>: Send + Sync {
    #[doc(hidden)]
    fn any(&self) -> &dyn Any;
    #[doc(hidden)]
    fn identity(&self) -> Identity;
    #[doc(hidden)]
    fn boxed(&self) -> Box<C::Interface>;
    #[doc(hidden)]
    fn debug(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
    #[doc(hidden)]
    fn visit(&self, visitor: &mut dyn DynVisitor);
    #[doc(hidden)]
    fn map(self: Box<Self>, mapper: &mut dyn DynMapper) -> Box<C::Interface>;
    #[doc(hidden)]
    fn to_device(self: Box<Self>, device: &Device) -> Box<C::Interface>;
    #[doc(hidden)]
    fn fork(self: Box<Self>, device: &Device) -> Box<C::Interface>;
    #[doc(hidden)]
    fn train(self: Box<Self>) -> Box<C::Interface>;
    #[doc(hidden)]
    fn materialize(self: Box<Self>) -> Box<C::Interface>;
    #[doc(hidden)]
    fn valid(&self) -> Box<C::Interface>;
    #[doc(hidden)]
    fn devices(&self, devices: Devices) -> Devices;
    #[doc(hidden)]
    fn num_params(&self) -> usize;
    #[doc(hidden)]
    fn format(&self, settings: DisplaySettings) -> String;
    #[doc(hidden)]
    fn content(&self, content: Content) -> Option<Content>;
}

/// A field that holds some implementation of the module class `C`: the one place where the class can be replaced
/// and where its calls can be observed.
///
/// A slot is made by `C::slot(…)`, which takes the arguments of `C::new` and asks its [`Init`](super::Init) for a
/// replacement, or by [`Slot::of`]. It dereferences to the class's interface, so `self.self_attn.forward(…)` reads
/// as if the field held the module itself. It is a Burn module like any other, adds no segment to parameter paths,
/// and costs one indirect call and one thread-local check a call.
pub struct Slot<C: ModuleClass>(Box<C::Interface>);

impl<C: ModuleClass> Slot<C> {
    /// A slot that holds `module`, which the compiler has checked to implement `C`.
    pub fn of<M: Implements<C>>(module: M) -> Self {
        Self(C::__boxed(Hooked::new(module)))
    }

    /// What the slot holds, if it is an `M`, for reading. A `forward` called on it is seen by no recorder.
    pub fn implementation<M: 'static>(&self) -> Option<&M> {
        self.0.any().downcast_ref()
    }

    /// The type name of what the slot holds.
    pub fn implementation_name(&self) -> &'static str {
        self.0.identity().implementation
    }
}

impl<C: ModuleClass> Deref for Slot<C> {
    type Target = C::Interface;
    #[inline]
    fn deref(&self) -> &C::Interface {
        &self.0
    }
}

impl<C: ModuleClass> Clone for Slot<C> {
    fn clone(&self) -> Self {
        Self(self.0.boxed())
    }
}

impl<C: ModuleClass> fmt::Debug for Slot<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.debug(f)
    }
}

impl<C: ModuleClass> fmt::Display for Slot<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.format(DisplaySettings::new()))
    }
}

impl<C: ModuleClass> Module for Slot<C> {
    fn collect_devices(&self, devices: Devices) -> Devices {
        self.0.devices(devices)
    }
    fn fork(self, device: &Device) -> Self {
        Self(self.0.fork(device))
    }
    fn to_device(self, device: &Device) -> Self {
        Self(self.0.to_device(device))
    }
    fn train(self) -> Self {
        Self(self.0.train())
    }
    fn valid(&self) -> Self {
        Self(self.0.valid())
    }
    fn materialize(self) -> Self {
        Self(self.0.materialize())
    }
    fn num_params(&self) -> usize {
        self.0.num_params()
    }
    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        walk::meet_slot(
            |place| {
                let Identity { implementation, implementation_id, id } = self.0.identity();
                SlotInfo {
                    path: place.clone(),
                    class: C::NAME,
                    class_id: TypeId::of::<C>(),
                    arity: C::Output::ARITY,
                    implementation,
                    implementation_id,
                    id,
                    place,
                    original_of: None,
                }
            },
            || Box::new(self.clone()),
        );
        self.0.visit(&mut Inward(visitor));
    }
    fn map<M: ModuleMapper>(self, mapper: &mut M) -> Self {
        Self(edited_slot(self).0.map(&mut Inward(mapper)))
    }
}

impl<C: ModuleClass> ModuleDisplayDefault for Slot<C> {
    fn content(&self, content: Content) -> Option<Content> {
        self.0.content(content)
    }
    fn num_params(&self) -> usize {
        self.0.num_params()
    }
}

impl<C: ModuleClass> ModuleDisplay for Slot<C> {
    fn format(&self, settings: DisplaySettings) -> String {
        self.0.format(settings)
    }
}
