use super::module_class::ModuleClass;
use super::slot::Slot;
use crate::patch::{Inside, PatchError, Patching};
use burn::tensor::Device;
use std::any::TypeId;
use std::sync::Arc;

/// What a constructor is told: the device, and what to put into its slots.
///
/// It is passed as a value, not found in thread-local state: there is nothing to restore after an error, and nothing
/// that another thread's construction could see.
#[derive(Clone, Debug)]
pub struct Init {
    device: Device,
    patches: Option<Arc<Patching>>,
    /// The replacements under construction around this one.
    inside: Option<Arc<Inside>>,
}

impl Init {
    /// Plain construction on `device`: every slot gets the class that it names.
    pub fn new(device: &Device) -> Self {
        Self { device: device.clone(), patches: None, inside: None }
    }

    /// The device that parameters are made on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// This with patches.
    pub(crate) fn patched(self, patches: Arc<Patching>) -> Self {
        Self { patches: Some(patches), ..self }
    }

    /// Whether anything was replaced by what was constructed with this so far.
    pub(crate) fn has_replaced(&self) -> bool {
        self.patches.as_ref().is_some_and(|patches| patches.has_replaced())
    }

    /// Whether the patches could do all that they were asked for, in what was constructed with this so far. For
    /// constructions with [`PatchSet::init`](crate::patch::PatchSet::init); the other ways check by themselves.
    ///
    /// # Errors
    ///
    /// [`PatchError::Unfit`] if a pattern matched a class that its replacement cannot stand in for.
    pub fn check_patches(&self) -> Result<(), PatchError> {
        self.patches.as_ref().map_or(Ok(()), |patches| patches.check())
    }

    #[doc(hidden)]
    pub fn __construct<C: ModuleClass>(&self) -> Construct<C> {
        let class = TypeId::of::<C>;
        let replacement = match &self.patches {
            Some(patches) if !self.inside.as_ref().is_some_and(|inside| inside.contains(class())) => {
                patches.choose::<C>()
            }
            _ => None,
        };
        match replacement {
            None => Construct { new: C::__factory::<C>(), inner: None },
            Some(new) => {
                let inside = Some(Inside::new(class(), self.inside.clone()));
                Construct { new, inner: Some(Self { inside, ..self.clone() }) }
            }
        }
    }
}

/// The constructor chosen for one slot, and the `Init` to call it with.
#[doc(hidden)]
pub struct Construct<C: ModuleClass> {
    pub new: C::New<Slot<C>>,
    inner: Option<Init>,
}

impl<C: ModuleClass> Construct<C> {
    /// What the chosen constructor is told, where it differs from what its caller was told.
    pub fn init<'a>(&'a self, outer: &'a Init) -> &'a Init {
        self.inner.as_ref().unwrap_or(outer)
    }
}
