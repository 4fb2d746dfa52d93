//! What `#[merge_with_config_defaults]` puts at the head of a function.

use super::defaults::ConfigDefaults;
use super::error::CaptureError;
use super::kwargs::ForwardKwargs;
use burn::module::Module;
#[cfg(feature = "autodiff")]
use burn::module::{ModuleVisitor, Param};
#[cfg(feature = "autodiff")]
use burn::tensor::{Device, GradientCheckpointingStrategy, Tensor};
use std::borrow::Cow;
use std::sync::Once;

/// The argument, or the config's value where it is `None`.
pub fn merged<T>(argument: Option<T>, config: impl Into<Option<T>>) -> Option<T> {
    argument.or_else(|| config.into())
}

/// `use_cache`, off while training with gradient checkpointing.
pub fn merged_use_cache<M: Module>(argument: Option<bool>, config: impl Into<Option<bool>>, model: &M) -> Option<bool> {
    let merged = argument.or_else(|| config.into());
    if merged != Some(true) || !is_checkpointing(model) {
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
pub fn merged_kwargs<'a, M: Module>(
    kwargs: &'a ForwardKwargs,
    config: &impl ConfigDefaults,
    model: &M,
) -> Cow<'a, ForwardKwargs> {
    let use_cache = merged_use_cache(kwargs.get_use_cache(), config.use_cache(), model);
    let is_causal = merged(kwargs.get_is_causal(), config.is_causal());
    if use_cache == kwargs.get_use_cache() && is_causal == kwargs.get_is_causal() {
        return Cow::Borrowed(kwargs);
    }
    Cow::Owned(kwargs.clone().use_cache(use_cache).is_causal(is_causal))
}

/// Without autodiff there is no backward pass.
#[cfg(not(feature = "autodiff"))]
fn is_checkpointing<M: Module>(_: &M) -> bool {
    false
}

/// Whether the model's parameters are on a device that recomputes activations in the backward pass.
#[cfg(feature = "autodiff")]
fn is_checkpointing<M: Module>(model: &M) -> bool {
    struct FirstDevice(Option<Device>);
    impl ModuleVisitor for FirstDevice {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if self.0.is_none() {
                self.0 = Some(param.lazy_device());
            }
        }
    }
    let mut first = FirstDevice(None);
    model.visit(&mut first);
    first.0.is_some_and(|device| {
        device
            .gradient_checkpointing_strategy()
            .is_some_and(|strategy| strategy != GradientCheckpointingStrategy::Disabled)
    })
}
