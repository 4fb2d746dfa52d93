//! What `#[merge_with_config_defaults]` puts at the head of a function.

use super::defaults::ConfigDefaults;
use super::error::CaptureError;
use super::kwargs::ForwardKwargs;
use super::recorder::CanRecordOutputs;
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor};
use std::borrow::Cow;
use std::sync::Once;

/// The argument, or the config's value where it is `None`.
pub fn merged<T>(argument: Option<T>, config: impl Into<Option<T>>) -> Option<T> {
    argument.or_else(|| config.into())
}

/// `use_cache`, off while training with gradient checkpointing. `device` is that of the model's parameters, asked for
/// only where it matters.
pub fn merged_use_cache(
    argument: Option<bool>,
    config: impl Into<Option<bool>>,
    device: impl FnOnce() -> Option<Device>,
) -> Option<bool> {
    let merged = argument.or_else(|| config.into());
    if merged != Some(true) || !is_checkpointing(device) {
        return merged;
    }
    if argument == Some(true) {
        static WARNED: Once = Once::new();
        WARNED.call_once(|| log::warn!("`use_cache = true` is off while training with gradient checkpointing"));
    }
    Some(false)
}

/// A `vision_feature_select_strategy`, which must be one that exists.
pub fn merged_select_strategy<T: AsRef<str>>(
    argument: Option<T>,
    config: impl Into<Option<T>>,
) -> Result<Option<T>, CaptureError> {
    let merged = merged(argument, config);
    match merged.as_ref().map(T::as_ref) {
        None | Some("default" | "full") => Ok(merged),
        Some(found) => Err(CaptureError::SelectStrategy { found: found.to_owned() }),
    }
}

/// The caller's kwargs with the config's `use_cache` and `is_causal` filled in, for this call only.
pub fn merged_kwargs<'a>(
    kwargs: &'a ForwardKwargs,
    config: &impl ConfigDefaults,
    device: impl FnOnce() -> Option<Device>,
) -> Cow<'a, ForwardKwargs> {
    let use_cache = merged_use_cache(kwargs.get_use_cache(), config.use_cache(), device);
    let is_causal = merged(kwargs.get_is_causal(), config.is_causal());
    with_arguments(kwargs, use_cache, is_causal)
}

/// The kwargs with these values, which are those of arguments of the same names: a call has one `use_cache`.
pub fn with_arguments(
    kwargs: &ForwardKwargs,
    use_cache: Option<bool>,
    is_causal: Option<bool>,
) -> Cow<'_, ForwardKwargs> {
    if use_cache == kwargs.get_use_cache() && is_causal == kwargs.get_is_causal() {
        return Cow::Borrowed(kwargs);
    }
    Cow::Owned(kwargs.clone().use_cache(use_cache).is_causal(is_causal))
}

/// Without autodiff there is no backward pass.
#[cfg(not(feature = "autodiff"))]
fn is_checkpointing(_: impl FnOnce() -> Option<Device>) -> bool {
    false
}

/// Whether parameters are on a device that recomputes activations in the backward pass.
#[cfg(feature = "autodiff")]
fn is_checkpointing(device: impl FnOnce() -> Option<Device>) -> bool {
    use burn::tensor::GradientCheckpointingStrategy::Disabled;
    device().is_some_and(|device| device.gradient_checkpointing_strategy().is_some_and(|strategy| strategy != Disabled))
}

/// The device of a module's first parameter.
pub fn first_device<M: Module>(module: &M) -> Option<Device> {
    struct First(Option<Device>);
    impl ModuleVisitor for First {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if self.0.is_none() {
                self.0 = Some(param.lazy_device());
            }
        }
    }
    let mut first = First(None);
    module.visit(&mut first);
    first.0
}

/// Finds a model's device: field by field where the model derives `CanRecordOutputs`, which is over at the first
/// parameter, else by a walk over all of it. The inherent method wins over the trait's where there is one.
pub struct DeviceOf<'a, M>(pub &'a M);

impl<M: CanRecordOutputs> DeviceOf<'_, M> {
    /// The device of the model's first parameter.
    pub fn get(&self) -> Option<Device> {
        self.0.__first_device()
    }
}

/// For modules that are no base models.
pub trait DeviceByWalk {
    /// The device of the module's first parameter.
    fn get(&self) -> Option<Device>;
}

impl<M: Module> DeviceByWalk for DeviceOf<'_, M> {
    fn get(&self) -> Option<Device> {
        first_device(self.0)
    }
}

/// For fields that are no modules: by one reference more, so that it comes last.
pub trait NoDevice {
    /// None.
    fn get(&self) -> Option<Device> {
        None
    }
}

impl<T> NoDevice for &DeviceOf<'_, T> {}
