use crate::error::ForwardError;
use patching_core::capture::{CapturePlan, Captures};
use patching_core::prelude::*;

/// A model that records by its own declaration, alone or as a part of another: an encoder, a decoder, the tower of a
/// composite model.
pub trait Tower: CanRecordOutputs {
    /// What it is given.
    type Inputs;
    /// What it gives.
    type Output: ModelOutput;

    /// As the model's own `forward`.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, or something that was asked
    /// for cannot be recorded.
    fn run_tower(&self, inputs: Self::Inputs, kwargs: &ForwardKwargs) -> Result<Self::Output, ForwardError>;

    /// Only what is recorded; the run stops as soon as all of it is there.
    ///
    /// # Errors
    ///
    /// As [`run_tower`](Self::run_tower).
    fn tower_captures(
        &self,
        inputs: Self::Inputs,
        kwargs: &ForwardKwargs,
    ) -> Result<Captures<Self::Output>, ForwardError>;

    /// What `kwargs` would record, without running anything.
    ///
    /// # Errors
    ///
    /// When something that is asked for cannot be recorded.
    fn tower_plan(&self, kwargs: &ForwardKwargs) -> Result<CapturePlan, CaptureError>;

    /// Chooses the attention implementation of a live model.
    ///
    /// # Errors
    ///
    /// [`ConfigError::UnknownAttention`](crate::config::ConfigError::UnknownAttention) lists the choices.
    fn set_tower_attention(&mut self, name: &str) -> Result<(), crate::config::ConfigError>;
}

/// The keys that `M` declares, in order.
pub(crate) fn declared_keys<M: CanRecordOutputs>() -> Vec<String> {
    each_once([M::RECORDERS.iter().map(|recorder| recorder.key().to_owned()).collect()])
}

/// The keys of all parts of a model, each where it is first.
pub(crate) fn each_once<const N: usize>(parts: [Vec<String>; N]) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for key in parts.into_iter().flatten() {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

/// Makes a struct a [`Tower`]: one with a field `config`, and a `forward` below `#[capture_outputs]` or `around` a part of
/// it that is a tower, which `given` makes the inputs of.
macro_rules! tower {
    ($tower:ident: $inputs:ty => $output:ty, around $part:ident: $inside:ident, given: $given:ident) => {
        /// It records what the part inside does.
        #[diagnostic::do_not_recommend]
        impl CanRecordOutputs for $tower {
            const MODEL: &'static str = stringify!($tower);
            const RECORDERS: &'static [patching_core::capture::OutputRecorder] =
                <$inside as CanRecordOutputs>::RECORDERS;

            fn output_recorders(&self) -> &OutputRecorders {
                self.$part.output_recorders()
            }
        }

        impl $crate::models::Tower for $tower {
            type Inputs = $inputs;
            type Output = $output;

            fn run_tower(&self, inputs: $inputs, kwargs: &ForwardKwargs) -> Result<$output, $crate::ForwardError> {
                self.forward(inputs, kwargs)
            }

            fn tower_captures(
                &self,
                inputs: $inputs,
                kwargs: &ForwardKwargs,
            ) -> Result<patching_core::capture::Captures<$output>, $crate::ForwardError> {
                $crate::models::Tower::tower_captures(&self.$part, self.$given(inputs)?, kwargs)
            }

            fn tower_plan(&self, kwargs: &ForwardKwargs) -> Result<patching_core::capture::CapturePlan, CaptureError> {
                $crate::models::Tower::tower_plan(&self.$part, kwargs)
            }

            fn set_tower_attention(&mut self, name: &str) -> Result<(), $crate::config::ConfigError> {
                $crate::models::Tower::set_tower_attention(&mut self.$part, name)?;
                self.config.general.attn_implementation = Some(name.to_owned());
                Ok(())
            }
        }
    };
    ($tower:ident: $inputs:ty => $output:ty) => {
        impl $crate::models::Tower for $tower {
            type Inputs = $inputs;
            type Output = $output;

            fn run_tower(&self, inputs: $inputs, kwargs: &ForwardKwargs) -> Result<$output, $crate::ForwardError> {
                self.forward(inputs, kwargs)
            }

            fn tower_captures(
                &self,
                inputs: $inputs,
                kwargs: &ForwardKwargs,
            ) -> Result<patching_core::capture::Captures<$output>, $crate::ForwardError> {
                self.forward_captures(inputs, kwargs)
            }

            fn tower_plan(&self, kwargs: &ForwardKwargs) -> Result<patching_core::capture::CapturePlan, CaptureError> {
                self.forward_plan(kwargs)
            }

            fn set_tower_attention(&mut self, name: &str) -> Result<(), $crate::config::ConfigError> {
                $crate::layers::attention::AttentionInterface::check(Some(name))?;
                self.config.general.attn_implementation = Some(name.to_owned());
                Ok(())
            }
        }
    };
}
pub(crate) use tower;
