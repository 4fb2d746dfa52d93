use crate::config::{ConfigError, DecoderConfig};
use crate::error::ForwardError;
use crate::inputs::TextInputs;
use crate::outputs::DecoderOutput;
use burn::nn::Embedding;
use patching_core::capture::{CapturePlan, Captures};
use patching_core::prelude::*;

/// A decoder without a head.
pub trait BaseModel: PreTrainedModel<Config: DecoderConfig> + CanRecordOutputs {
    /// What it gives.
    type Output: DecoderOutput;

    /// As the model's own `forward`.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, something that was asked
    /// for cannot be recorded, or a router did not use the experts that the inputs force on it.
    fn forward_base(&self, inputs: TextInputs, kwargs: &ForwardKwargs) -> Result<Self::Output, ForwardError>;

    /// Only what is recorded; the run stops as soon as all of it is there.
    ///
    /// # Errors
    ///
    /// As [`forward_base`](Self::forward_base).
    fn captures(&self, inputs: TextInputs, kwargs: &ForwardKwargs) -> Result<Captures<Self::Output>, ForwardError>;

    /// What `kwargs` would record, without running anything.
    ///
    /// # Errors
    ///
    /// When something that is asked for cannot be recorded.
    fn capture_plan(&self, kwargs: &ForwardKwargs) -> Result<CapturePlan, CaptureError>;

    /// The table of token embeddings.
    fn embedding(&self) -> &Embedding;

    /// Chooses the attention implementation of a live model.
    ///
    /// # Errors
    ///
    /// [`ConfigError::UnknownAttention`] lists the choices.
    fn set_attn_implementation(&mut self, name: &str) -> Result<(), ConfigError>;

    /// Chooses the implementation of mixtures of experts of a live model.
    ///
    /// # Errors
    ///
    /// [`ConfigError::UnknownExperts`] lists the choices; [`ConfigError::NoExperts`] where no layer has experts.
    fn set_experts_implementation(&mut self, name: &str) -> Result<(), ConfigError>;
}

/// Makes a family's base model one that loads, saves, and carries heads.
macro_rules! base_model {
    ($model:ident, $config:ident, $output:ty) => {
        impl patching_core::weights::PreTrainedModel for $model {
            type Config = $config;
            const CLASS_NAME: &'static str = stringify!($model);
            const BASE_MODEL_PREFIX: &'static str = "model";

            fn new(config: &$config, init: &Init) -> Self {
                Self::new(config, init)
            }

            fn config(&self) -> &$config {
                &self.config
            }
        }

        impl $crate::models::Decoder for $model {
            type Base = Self;

            fn base(&self) -> &Self {
                self
            }

            fn base_mut(&mut self) -> &mut Self {
                self
            }
        }

        impl $crate::models::BaseModel for $model {
            type Output = $output;

            fn forward_base(
                &self,
                inputs: $crate::TextInputs,
                kwargs: &ForwardKwargs,
            ) -> Result<$output, $crate::ForwardError> {
                self.forward(inputs, kwargs)
            }

            fn captures(
                &self,
                inputs: $crate::TextInputs,
                kwargs: &ForwardKwargs,
            ) -> Result<patching_core::capture::Captures<$output>, $crate::ForwardError> {
                self.forward_captures(inputs, kwargs)
            }

            fn capture_plan(
                &self,
                kwargs: &ForwardKwargs,
            ) -> Result<patching_core::capture::CapturePlan, CaptureError> {
                self.forward_plan(kwargs)
            }

            fn embedding(&self) -> &burn::nn::Embedding {
                &self.embed_tokens
            }

            fn set_attn_implementation(&mut self, name: &str) -> Result<(), $crate::config::ConfigError> {
                $crate::layers::attention::AttentionInterface::check(Some(name))?;
                self.config.general.attn_implementation = Some(name.to_owned());
                Ok(())
            }

            fn set_experts_implementation(&mut self, name: &str) -> Result<(), $crate::config::ConfigError> {
                $crate::config::check_experts(&self.config, Some(name))?;
                self.config.general.experts_implementation = Some(name.to_owned());
                Ok(())
            }
        }
    };
}
pub(crate) use base_model;
