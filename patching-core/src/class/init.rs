use super::module_class::ModuleClass;
use super::slot::Slot;
use burn::tensor::Device;

/// What a constructor is told: the device, and what to put into its slots.
///
/// It is passed as a value, not found in thread-local state: there is nothing to restore after an error, and nothing
/// that another thread's construction could see.
#[derive(Clone, Debug)]
pub struct Init {
    device: Device,
}

impl Init {
    /// Plain construction on `device`: every slot gets the class that it names.
    pub fn new(device: &Device) -> Self {
        Self { device: device.clone() }
    }

    /// The device that parameters are made on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    #[doc(hidden)]
    pub fn __construct<C: ModuleClass>(&self) -> Construct<C> {
        Construct { new: C::__factory::<C>(), inner: None }
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
