use super::select::architecture;
use super::{AutoError, Family, Head};
use crate::config::{self, DecoderConfig, GeneralConfig};
use crate::generation::{self, GenerateError, GenerateOutput, GenerationConfig, Step};
use crate::models::{BaseModel, Decoder};
use crate::{
    BaseModelOutputWithPast, CausalLMOutputWithPast, ForwardError, SequenceClassifierOutputWithPast, TextInputs,
};
use crate::{llama, mistral, qwen2, qwen3};
use burn::tensor::Device;
use patching_core::capture::{CapturePlan, Captures};
use patching_core::prelude::*;
use patching_core::weights::{LoadOptions, LoadReport, SaveError, SaveOptions, SaveReport};
use std::ops::ControlFlow;
use std::path::Path;

/// An enum over the families, with what all its models do alike.
macro_rules! auto_model {
    ($(#[$doc:meta])* $auto:ident { $($family:ident($model:ty)),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub enum $auto {
            $(#[doc = concat!("A [`", stringify!($model), "`].")] $family(Box<$model>),)*
        }

        impl $auto {
            /// Loads the checkpoint in the folder `dir`.
            ///
            /// # Errors
            ///
            /// When its family is not known, or it cannot be loaded.
            pub fn from_pretrained(dir: impl AsRef<Path>, device: &Device) -> Result<Self, AutoError> {
                Self::from_pretrained_with(dir, device, &LoadOptions::default()).map(|(model, _)| model)
            }

            /// [`from_pretrained`](Self::from_pretrained) with options and a report.
            ///
            /// # Errors
            ///
            /// As [`from_pretrained`](Self::from_pretrained), less what the options allow.
            pub fn from_pretrained_with(
                dir: impl AsRef<Path>,
                device: &Device,
                options: &LoadOptions,
            ) -> Result<(Self, LoadReport), AutoError> {
                let dir = dir.as_ref();
                match Family::of(dir)? {
                    $(Family::$family => {
                        let (model, report) = <$model>::from_pretrained_with(dir, device, options)?;
                        Ok((Self::$family(Box::new(model)), report))
                    })*
                }
            }

            /// Saves the model to the folder `dir`.
            ///
            /// # Errors
            ///
            /// When a file cannot be written.
            pub fn save_pretrained(&self, dir: impl AsRef<Path>) -> Result<SaveReport, SaveError> {
                self.save_pretrained_with(dir, &SaveOptions::default())
            }

            /// [`save_pretrained`](Self::save_pretrained) with options.
            ///
            /// # Errors
            ///
            /// When a file cannot be written.
            pub fn save_pretrained_with(
                &self,
                dir: impl AsRef<Path>,
                options: &SaveOptions,
            ) -> Result<SaveReport, SaveError> {
                match self { $(Self::$family(model) => model.save_pretrained_with(dir, options)),* }
            }

            /// Its family.
            pub fn family(&self) -> Family {
                match self { $(Self::$family(_) => Family::$family),* }
            }

            /// The name of its class.
            pub fn class_name(&self) -> &'static str {
                match self { $(Self::$family(_) => <$model as PreTrainedModel>::CLASS_NAME),* }
            }

            /// The part of its config that is not about the architecture.
            pub fn general_config(&self) -> &GeneralConfig {
                match self { $(Self::$family(model) => model.config().general()),* }
            }

            /// Its config as JSON.
            pub fn config_json(&self) -> serde_json::Value {
                match self {
                    // A config is always a value of JSON.
                    $(Self::$family(model) => serde_json::to_value(model.config()).unwrap_or_default()),*
                }
            }

            /// What `kwargs` would record, without running anything.
            ///
            /// # Errors
            ///
            /// When something that is asked for cannot be recorded.
            pub fn capture_plan(&self, kwargs: &ForwardKwargs) -> Result<CapturePlan, CaptureError> {
                match self { $(Self::$family(model) => model.base().capture_plan(kwargs)),* }
            }

            /// Only what is recorded; the run stops as soon as all of it is there.
            ///
            /// # Errors
            ///
            /// When the inputs do not fit, or something that was asked for cannot be recorded.
            pub fn captures(
                &self,
                inputs: impl Into<TextInputs>,
                kwargs: &ForwardKwargs,
            ) -> Result<Captures<BaseModelOutputWithPast>, ForwardError> {
                let inputs = inputs.into();
                match self { $(Self::$family(model) => model.base().captures(inputs, kwargs)),* }
            }

            /// Chooses the attention implementation.
            ///
            /// # Errors
            ///
            /// An unknown name is an error that lists the choices.
            pub fn set_attn_implementation(&mut self, name: &str) -> Result<(), config::ConfigError> {
                match self { $(Self::$family(model) => model.base_mut().set_attn_implementation(name)),* }
            }
        }

        $(impl From<$model> for $auto {
            fn from(model: $model) -> Self {
                Self::$family(Box::new(model))
            }
        })*
    };
}

auto_model! {
    /// A decoder of any family, without a head.
    AutoModel {
        Llama(llama::LlamaModel),
        Mistral(mistral::MistralModel),
        Qwen2(qwen2::Qwen2Model),
        Qwen3(qwen3::Qwen3Model),
    }
}

auto_model! {
    /// A language model of any family.
    AutoModelForCausalLM {
        Llama(llama::LlamaForCausalLM),
        Mistral(mistral::MistralForCausalLM),
        Qwen2(qwen2::Qwen2ForCausalLM),
        Qwen3(qwen3::Qwen3ForCausalLM),
    }
}

auto_model! {
    /// A classifier of sequences of any family.
    AutoModelForSequenceClassification {
        Llama(llama::LlamaForSequenceClassification),
        Mistral(mistral::MistralForSequenceClassification),
        Qwen2(qwen2::Qwen2ForSequenceClassification),
        Qwen3(qwen3::Qwen3ForSequenceClassification),
    }
}

/// Calls the same on whichever model it is.
macro_rules! each {
    ($auto:expr, $model:ident => $call:expr) => {
        match $auto {
            Self::Llama($model) => $call,
            Self::Mistral($model) => $call,
            Self::Qwen2($model) => $call,
            Self::Qwen3($model) => $call,
        }
    };
}

impl AutoModel {
    /// Runs the model.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, or something that was asked for cannot be recorded.
    pub fn forward(
        &self,
        inputs: impl Into<TextInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<BaseModelOutputWithPast, ForwardError> {
        each!(self, model => model.forward(inputs, kwargs))
    }
}

impl AutoModelForCausalLM {
    /// Runs the model and computes logits.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, or something that was asked for cannot be recorded.
    pub fn forward(
        &self,
        inputs: impl Into<TextInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<CausalLMOutputWithPast, ForwardError> {
        each!(self, model => model.forward(inputs, kwargs))
    }

    /// Continues token sequences; see [`generate`](generation::generate()).
    ///
    /// # Errors
    ///
    /// When the inputs or the generation config do not fit, or a forward pass fails.
    pub fn generate(
        &self,
        inputs: impl Into<TextInputs>,
        config: &GenerationConfig,
        kwargs: &ForwardKwargs,
    ) -> Result<GenerateOutput, GenerateError> {
        each!(self, model => model.generate(inputs, config, kwargs))
    }

    /// Continues token sequences and tells `callback` of each step.
    ///
    /// # Errors
    ///
    /// As [`generate`](Self::generate).
    pub fn generate_with(
        &self,
        inputs: impl Into<TextInputs>,
        config: &GenerationConfig,
        kwargs: &ForwardKwargs,
        callback: impl FnMut(Step<'_>) -> ControlFlow<()>,
    ) -> Result<GenerateOutput, GenerateError> {
        each!(self, model => generation::generate_with(&**model, inputs, config, kwargs, callback))
    }
}

impl AutoModelForSequenceClassification {
    /// Runs the model and scores each sequence.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, or something that was asked for cannot be recorded.
    pub fn forward(
        &self,
        inputs: impl Into<TextInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<SequenceClassifierOutputWithPast, ForwardError> {
        each!(self, model => model.forward(inputs, kwargs))
    }
}

/// A checkpoint as what it was saved from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnyModel {
    /// Without a head.
    Base(AutoModel),
    /// A language model.
    CausalLM(AutoModelForCausalLM),
    /// A classifier of sequences.
    SequenceClassification(AutoModelForSequenceClassification),
}

impl AnyModel {
    /// Loads the checkpoint in the folder `dir` into the class that its `architectures` name first.
    ///
    /// # Errors
    ///
    /// When that class is not known, or the checkpoint cannot be loaded.
    pub fn from_pretrained_with(
        dir: impl AsRef<Path>,
        device: &Device,
        options: &LoadOptions,
    ) -> Result<(Self, LoadReport), AutoError> {
        let dir = dir.as_ref();
        let (_, head) = architecture(dir)?;
        Ok(match head {
            Head::None => {
                let (model, report) = AutoModel::from_pretrained_with(dir, device, options)?;
                (Self::Base(model), report)
            }
            Head::CausalLM => {
                let (model, report) = AutoModelForCausalLM::from_pretrained_with(dir, device, options)?;
                (Self::CausalLM(model), report)
            }
            Head::SequenceClassification => {
                let (model, report) = AutoModelForSequenceClassification::from_pretrained_with(dir, device, options)?;
                (Self::SequenceClassification(model), report)
            }
        })
    }
}
