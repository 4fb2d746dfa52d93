use super::Tower;
use crate::auto::NamedArguments;
use crate::config::{ConfigError, GeneralConfig, ModelConfig};
use crate::error::ForwardError;
use crate::generation::{AnyGenerateOutput, GenerateError, GenerationConfig};
use crate::inputs::TextInputs;
use patching_core::capture::{CapturePlan, Returned};
use patching_core::prelude::*;

/// A model of any kind that loads from checkpoints: what generic code knows of it.
///
/// [`AnyModel`](crate::auto::AnyModel) is built on it; a model outside this crate joins in by implementing it and submitting
/// a [`ModelClass`](crate::auto::ModelClass).
pub trait Model: PreTrainedModel<Config: ModelConfig> + Sync {
    /// What it is given.
    type Inputs: NamedArguments;
    /// What it gives.
    type Output: ModelOutput;

    /// The names of its inputs, as the reference's `forward` has them.
    const INPUT_NAMES: &'static [&'static str];

    /// Whether it is what the `model_type` of its config alone stands for, rather than a base model with a head.
    const IS_BASE: bool = false;

    /// Whether it generates text, so that [`generate_any`](Self::generate_any) does.
    const GENERATES: bool = false;

    /// As the model's own `forward`.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, or something that was asked
    /// for cannot be recorded.
    fn run(&self, inputs: Self::Inputs, kwargs: &ForwardKwargs) -> Result<Self::Output, ForwardError>;

    /// What `kwargs` would record, without running anything.
    ///
    /// # Errors
    ///
    /// When something that is asked for cannot be recorded.
    fn capture_plan(&self, kwargs: &ForwardKwargs) -> Result<CapturePlan, CaptureError>;

    /// The keys that can be asked for, in the order of their declaration.
    fn recordable_keys() -> Vec<String>;

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
    fn set_experts_implementation(&mut self, name: &str) -> Result<(), ConfigError> {
        Err(ConfigError::NoExperts { name: name.to_owned(), model_type: self.general_config().model_type.clone() })
    }

    /// The implementation of mixtures of experts that it uses; `None` without experts.
    fn experts_implementation(&self) -> Option<&str> {
        None
    }

    /// The part of its config that is not about the architecture.
    fn general_config(&self) -> &GeneralConfig {
        self.config().general()
    }

    /// Continues what it is given, with the types of its outputs erased; `None` for a model that generates no text.
    fn generate_any(
        &self,
        _inputs: Self::Inputs,
        _config: &GenerationConfig,
        _kwargs: &ForwardKwargs,
    ) -> Option<Result<AnyGenerateOutput, GenerateError>> {
        None
    }

    /// An output as the caller wants it: the struct, or the tuple of what is present where `return_dict` is `false`.
    /// Where the caller does not say, the config does.
    fn returned<O: ModelOutput>(&self, output: O, kwargs: &ForwardKwargs) -> Returned<O> {
        output.returned(kwargs.get_return_dict().or(self.general_config().return_dict))
    }
}

/// Refuses what an encoder gave, for heads that have no output for the attention to it.
pub(crate) fn no_encoder(general: &GeneralConfig, inputs: &TextInputs) -> Result<(), ForwardError> {
    match inputs.encoder_hidden_states {
        None => Ok(()),
        Some(_) => Err(ForwardError::Unused {
            model: general.model_type.clone(),
            name: "encoder_hidden_states",
            because: " with this head",
        }),
    }
}

/// Refuses labels, for models without a head that read them otherwise.
pub(crate) fn no_labels(general: &GeneralConfig, inputs: &TextInputs) -> Result<(), ForwardError> {
    match inputs.labels {
        None => Ok(()),
        Some(_) => Err(ForwardError::Unused {
            model: general.model_type.clone(),
            name: "labels",
            because: ": no head here computes a loss",
        }),
    }
}

/// A model that is one tower, with or without a head.
pub trait HasTower: Model {
    /// What records.
    type Tower: Tower;

    /// What records.
    fn tower(&self) -> &Self::Tower;
}

/// Makes a base model one that loads, saves, and is known by its class: one that is a `tower!` and has a `new`.
macro_rules! base_tower {
    (
        $model:ident($config:ident): $inputs:ty => $output:ty;
        prefix: $prefix:literal,
        inputs: $names:expr
        $(, is_base: $is_base:literal)?
        $(, around $part:ident: $inside:ident, given: $given:ident)?
        $(, pretrained: { $($pretrained:item)* })?
    ) => {
        $crate::models::tower!($model: $inputs => $output $(, around $part: $inside, given: $given)?);

        impl $model {
            /// Chooses the attention implementation of a live model.
            ///
            /// # Errors
            ///
            /// An unknown name is an error that lists the choices.
            pub fn set_attn_implementation(&mut self, name: &str) -> Result<(), $crate::config::ConfigError> {
                $crate::models::Tower::set_tower_attention(self, name)
            }
        }

        impl patching_core::weights::PreTrainedModel for $model {
            type Config = $config;
            const CLASS_NAME: &'static str = stringify!($model);
            const BASE_MODEL_PREFIX: &'static str = $prefix;

            fn new(config: &$config, init: &Init) -> Self {
                Self::new(config, init)
            }

            fn config(&self) -> &$config {
                &self.config
            }

            $($($pretrained)*)?
        }

        impl $crate::models::Model for $model {
            type Inputs = $inputs;
            type Output = $output;
            const INPUT_NAMES: &'static [&'static str] = $names;
            const IS_BASE: bool = true $(&& $is_base)?;

            fn run(&self, inputs: $inputs, kwargs: &ForwardKwargs) -> Result<$output, $crate::ForwardError> {
                self.forward(inputs, kwargs)
            }

            fn capture_plan(&self, kwargs: &ForwardKwargs) -> Result<patching_core::capture::CapturePlan, CaptureError> {
                $crate::models::Tower::tower_plan(self, kwargs)
            }

            fn recordable_keys() -> Vec<String> {
                $crate::models::declared_keys::<Self>()
            }

            fn set_attn_implementation(&mut self, name: &str) -> Result<(), $crate::config::ConfigError> {
                $crate::models::Tower::set_tower_attention(self, name)
            }
        }

        impl $crate::models::HasTower for $model {
            type Tower = Self;

            fn tower(&self) -> &Self {
                self
            }
        }

        $crate::auto::model_class!($model);
    };
}
pub(crate) use base_tower;

/// Makes a struct with a base model inside one that loads, saves, and is known by its class: a head. It has `new` and
/// `forward`, and hands on with `pass_on` what its base model recorded.
macro_rules! model_head {
    (
        $head:ident { $($base:ident).+: $model:ident }($config:ident): $inputs:ty => $output:ty;
        prefix: $prefix:literal,
        inputs: $names:expr
        $(, generates: $generates:ident)?
        $(, pretrained: { $($pretrained:item)* })?
    ) => {
        impl $head {
            /// Chooses the attention implementation of a live model.
            ///
            /// # Errors
            ///
            /// An unknown name is an error that lists the choices.
            pub fn set_attn_implementation(&mut self, name: &str) -> Result<(), $crate::config::ConfigError> {
                $crate::models::Tower::set_tower_attention(&mut self.$($base).+, name)
            }
        }

        impl patching_core::weights::PreTrainedModel for $head {
            type Config = $config;
            const CLASS_NAME: &'static str = stringify!($head);
            const BASE_MODEL_PREFIX: &'static str = $prefix;

            fn new(config: &$config, init: &Init) -> Self {
                Self::new(config, init)
            }

            fn config(&self) -> &$config {
                patching_core::weights::PreTrainedModel::config(&self.$($base).+)
            }

            $($($pretrained)*)?
        }

        impl $crate::models::Model for $head {
            type Inputs = $inputs;
            type Output = $output;
            const INPUT_NAMES: &'static [&'static str] = $names;

            fn run(&self, inputs: $inputs, kwargs: &ForwardKwargs) -> Result<$output, $crate::ForwardError> {
                self.forward(inputs, kwargs)
            }

            fn capture_plan(&self, kwargs: &ForwardKwargs) -> Result<patching_core::capture::CapturePlan, CaptureError> {
                $crate::models::Tower::tower_plan(&self.$($base).+, kwargs)
            }

            fn recordable_keys() -> Vec<String> {
                $crate::models::declared_keys::<$model>()
            }

            fn set_attn_implementation(&mut self, name: &str) -> Result<(), $crate::config::ConfigError> {
                $crate::models::Tower::set_tower_attention(&mut self.$($base).+, name)
            }

            $($crate::models::generate_any!($generates);)?
        }

        impl $crate::models::HasTower for $head {
            type Tower = $model;

            fn tower(&self) -> &$model {
                &self.$($base).+
            }
        }

        $crate::auto::model_class!($head);
    };
}
pub(crate) use model_head;

/// The method of a [`Model`] that generates by its own `generate`.
macro_rules! generate_any {
    ($generate:ident) => {
        const GENERATES: bool = true;

        fn generate_any(
            &self,
            inputs: Self::Inputs,
            config: &$crate::generation::GenerationConfig,
            kwargs: &ForwardKwargs,
        ) -> Option<Result<$crate::generation::AnyGenerateOutput, $crate::generation::GenerateError>> {
            Some(self.$generate(inputs, config, kwargs).map(Into::into))
        }
    };
}
pub(crate) use generate_any;
