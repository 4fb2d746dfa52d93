use super::{Model, Tower};
use crate::config::{ConfigError, DecoderConfig};
use crate::error::ForwardError;
use crate::inputs::TextInputs;
use crate::outputs::HiddenStateOutput;
use burn::nn::Embedding;
use patching_core::prelude::*;

/// A decoder without a head.
pub trait BaseModel:
    Model<Config: DecoderConfig, Output: HiddenStateOutput> + Tower<Inputs = TextInputs, Output = <Self as Model>::Output>
{
    /// As the model's own `forward`.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, something that was asked
    /// for cannot be recorded, or a router did not use the experts that the inputs force on it.
    fn forward_base(&self, inputs: TextInputs, kwargs: &ForwardKwargs)
    -> Result<<Self as Model>::Output, ForwardError>;

    /// The table of token embeddings.
    fn embedding(&self) -> &Embedding;

    /// Chooses the implementation of mixtures of experts of a live model.
    ///
    /// # Errors
    ///
    /// As [`set_experts_implementation`](Model::set_experts_implementation), which heads have as well.
    fn choose_experts(&mut self, name: &str) -> Result<(), ConfigError>;
}

/// Makes a family's base model one that loads, saves, and carries heads.
macro_rules! base_model {
    ($model:ident, $config:ident, $output:ty) => {
        $crate::models::tower!($model: $crate::TextInputs => $output);

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
            fn forward_base(
                &self,
                inputs: $crate::TextInputs,
                kwargs: &ForwardKwargs,
            ) -> Result<$output, $crate::ForwardError> {
                self.forward(inputs, kwargs)
            }

            fn embedding(&self) -> &burn::nn::Embedding {
                &self.embed_tokens
            }

            fn choose_experts(&mut self, name: &str) -> Result<(), $crate::config::ConfigError> {
                $crate::config::check_experts(&self.config, Some(name))?;
                self.config.general.experts_implementation = Some(name.to_owned());
                Ok(())
            }
        }

        $crate::models::decoder_class!($model: $output; is_base: true);
    };
}
pub(crate) use base_model;

/// Makes a decoder, with or without a head, one that is known by its class.
macro_rules! decoder_class {
    ($model:ident: $output:ty; is_base: $is_base:literal $(, generates: $generates:ident)?) => {
        impl $crate::models::Model for $model {
            type Inputs = $crate::TextInputs;
            type Output = $output;
            const INPUT_NAMES: &'static [&'static str] = match $is_base {
                true => $crate::auto::NamedInputs::TEXT_BASE,
                false => $crate::auto::NamedInputs::TEXT,
            };
            const IS_BASE: bool = $is_base;

            fn run(&self, inputs: $crate::TextInputs, kwargs: &ForwardKwargs) -> Result<$output, $crate::ForwardError> {
                self.forward(inputs, kwargs)
            }

            fn capture_plan(
                &self,
                kwargs: &ForwardKwargs,
            ) -> Result<patching_core::capture::CapturePlan, CaptureError> {
                $crate::models::Tower::tower_plan($crate::models::Decoder::base(self), kwargs)
            }

            fn recordable_keys() -> Vec<String> {
                $crate::models::declared_keys::<<Self as $crate::models::Decoder>::Base>()
            }

            fn set_attn_implementation(&mut self, name: &str) -> Result<(), $crate::config::ConfigError> {
                let base = $crate::models::Decoder::base_mut(self);
                $crate::models::Tower::set_tower_attention(base, name)
            }

            fn set_experts_implementation(&mut self, name: &str) -> Result<(), $crate::config::ConfigError> {
                $crate::models::BaseModel::choose_experts($crate::models::Decoder::base_mut(self), name)
            }

            fn experts_implementation(&self) -> Option<&str> {
                use $crate::config::DecoderConfig;
                let config = patching_core::weights::PreTrainedModel::config(self);
                config.experts()?;
                let chosen = config.general.experts_implementation.as_deref();
                Some(chosen.unwrap_or($crate::layers::experts::DEFAULT_EXPERTS))
            }

            $($crate::models::generate_any!($generates);)?
        }

        impl $crate::models::HasTower for $model {
            type Tower = <Self as $crate::models::Decoder>::Base;

            fn tower(&self) -> &Self::Tower {
                $crate::models::Decoder::base(self)
            }
        }

        $crate::auto::model_class!($model);
    };
}
pub(crate) use decoder_class;
