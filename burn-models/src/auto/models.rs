use super::{AutoCausalLMOutput, AutoError, AutoModelOutput, AutoSequenceClassifierOutput, Family};
use crate::config::{self, GeneralConfig, TokenIds};
use crate::generation::{self, GenerateError, GenerateOutput, GenerationConfig, Step};
use crate::models::{CausalLM, HasTower, Model, Tower};
use crate::{ForwardError, TextInputs};
use crate::{bert, gpt2, llama, mistral, mixtral, qwen2, qwen2_moe, qwen3};
use burn::module::Module;
use burn::tensor::Device;
use patching_core::capture::{AnyOutput, CapturePlan, Captures};
use patching_core::patch::{PatchReport, PatchSet, get_patch_mapping};
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

            /// The model that the config in the folder `dir` describes, the registered patches applied; its parameters
            /// are fresh, and made when they are first used.
            ///
            /// # Errors
            ///
            /// When its family is not known, the config cannot be read or describes no model that can be constructed, or
            /// a patch cannot be applied.
            pub fn from_config_of(dir: impl AsRef<Path>, device: &Device) -> Result<Self, AutoError> {
                Self::from_config_with(dir, device, &get_patch_mapping()).map(|(model, _)| model)
            }

            /// [`from_config_of`](Self::from_config_of) with `patches` instead of the registered ones, and what they
            /// replaced.
            ///
            /// # Errors
            ///
            /// As [`from_config_of`](Self::from_config_of).
            pub fn from_config_with(
                dir: impl AsRef<Path>,
                device: &Device,
                patches: &PatchSet,
            ) -> Result<(Self, PatchReport), AutoError> {
                let dir = dir.as_ref();
                match Family::of(dir)? {
                    $(Family::$family => {
                        let config = <$model as PreTrainedModel>::Config::from_pretrained(dir)?;
                        let (model, report) = <$model>::from_config_with(&config, device, patches)?;
                        Ok((Self::$family(Box::new(model)), report))
                    })*
                }
            }

            /// What `patches` would replace in the model that the config in the folder `dir` describes: it is
            /// constructed, but its parameters are never made.
            ///
            /// # Errors
            ///
            /// As [`from_config_of`](Self::from_config_of).
            pub fn patch_plan(
                dir: impl AsRef<Path>,
                device: &Device,
                patches: &PatchSet,
            ) -> Result<PatchReport, AutoError> {
                let dir = dir.as_ref();
                match Family::of(dir)? {
                    $(Family::$family => {
                        let config = <$model as PreTrainedModel>::Config::from_pretrained(dir)?;
                        Ok(<$model>::patch_plan(&config, device, patches)?)
                    })*
                }
            }

            /// How many parameters it has.
            pub fn num_params(&self) -> usize {
                match self { $(Self::$family(model) => model.num_params()),* }
            }

            /// The experts implementation that it uses; `None` for a model without experts.
            pub fn experts_implementation(&self) -> Option<&str> {
                match self { $(Self::$family(model) => model.experts_implementation()),* }
            }

            /// What `patches` have replaced in it, and which of their keys match nothing.
            pub fn patch_report(&self, patches: &PatchSet) -> PatchReport {
                match self { $(Self::$family(model) => patches.report(&**model)),* }
            }

            /// Saves the model to the folder `dir`.
            ///
            /// # Errors
            ///
            /// When a file cannot be written, or a parameter has no form in a checkpoint.
            pub fn save_pretrained(&self, dir: impl AsRef<Path>) -> Result<SaveReport, SaveError> {
                self.save_pretrained_with(dir, &SaveOptions::default())
            }

            /// [`save_pretrained`](Self::save_pretrained) with options.
            ///
            /// # Errors
            ///
            /// When a file cannot be written, or a parameter has no form in a checkpoint.
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
                match self { $(Self::$family(model) => Model::general_config(&**model)),* }
            }

            /// Its config as JSON.
            pub fn config_json(&self) -> serde_json::Value {
                match self {
                    // A config is always a value of JSON.
                    $(Self::$family(model) => serde_json::to_value(model.config()).unwrap_or_default()),*
                }
            }

            /// The keys that it can record, in the order of their declaration.
            pub fn recordable_keys(&self) -> Vec<String> {
                match self { $(Self::$family(_) => <$model as Model>::recordable_keys()),* }
            }

            /// What `kwargs` would record, without running anything.
            ///
            /// # Errors
            ///
            /// When something that is asked for cannot be recorded.
            pub fn capture_plan(&self, kwargs: &ForwardKwargs) -> Result<CapturePlan, CaptureError> {
                match self { $(Self::$family(model) => Model::capture_plan(&**model, kwargs)),* }
            }

            /// Only what is recorded; the run stops as soon as all of it is there.
            ///
            /// # Errors
            ///
            /// When the inputs do not fit, the config names an implementation that is not registered, something that
            /// was asked for cannot be recorded, or a router did not use the experts that the inputs force on it.
            pub fn captures(
                &self,
                inputs: impl Into<TextInputs>,
                kwargs: &ForwardKwargs,
            ) -> Result<Captures<AnyOutput>, ForwardError> {
                let inputs = inputs.into();
                match self {
                    $(Self::$family(model) => model.tower().tower_captures(inputs, kwargs).map(Captures::of_any)),*
                }
            }

            /// Chooses the attention implementation.
            ///
            /// # Errors
            ///
            /// An unknown name is an error that lists the choices.
            pub fn set_attn_implementation(&mut self, name: &str) -> Result<(), config::ConfigError> {
                match self { $(Self::$family(model) => Model::set_attn_implementation(&mut **model, name)),* }
            }

            /// Chooses the implementation of mixtures of experts.
            ///
            /// # Errors
            ///
            /// An unknown name is an error that lists the choices; a model without experts refuses every name.
            pub fn set_experts_implementation(&mut self, name: &str) -> Result<(), config::ConfigError> {
                match self { $(Self::$family(model) => Model::set_experts_implementation(&mut **model, name)),* }
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
    /// A text model of any family, without a head.
    ///
    /// Each variant holds the family's own class, for what only that has. The whole is a module as well, under the paths
    /// of what it holds: it can be searched for slots, moved to a device, trained and put into another module.
    AutoModel {
        Bert(bert::BertModel),
        Gpt2(gpt2::GPT2Model),
        Llama(llama::LlamaModel),
        Mistral(mistral::MistralModel),
        Mixtral(mixtral::MixtralModel),
        Qwen2(qwen2::Qwen2Model),
        Qwen2Moe(qwen2_moe::Qwen2MoeModel),
        Qwen3(qwen3::Qwen3Model),
    }
}

auto_model! {
    /// A language model of any family; otherwise as [`AutoModel`].
    AutoModelForCausalLM {
        Bert(bert::BertLMHeadModel),
        Gpt2(gpt2::GPT2LMHeadModel),
        Llama(llama::LlamaForCausalLM),
        Mistral(mistral::MistralForCausalLM),
        Mixtral(mixtral::MixtralForCausalLM),
        Qwen2(qwen2::Qwen2ForCausalLM),
        Qwen2Moe(qwen2_moe::Qwen2MoeForCausalLM),
        Qwen3(qwen3::Qwen3ForCausalLM),
    }
}

auto_model! {
    /// A classifier of sequences of any family; otherwise as [`AutoModel`].
    AutoModelForSequenceClassification {
        Bert(bert::BertForSequenceClassification),
        Gpt2(gpt2::GPT2ForSequenceClassification),
        Llama(llama::LlamaForSequenceClassification),
        Mistral(mistral::MistralForSequenceClassification),
        Mixtral(mixtral::MixtralForSequenceClassification),
        Qwen2(qwen2::Qwen2ForSequenceClassification),
        Qwen2Moe(qwen2_moe::Qwen2MoeForSequenceClassification),
        Qwen3(qwen3::Qwen3ForSequenceClassification),
    }
}

/// Calls the same on whichever model it is.
macro_rules! each {
    ($auto:expr, $model:ident => $call:expr) => {
        match $auto {
            Self::Bert($model) => $call,
            Self::Gpt2($model) => $call,
            Self::Llama($model) => $call,
            Self::Mistral($model) => $call,
            Self::Mixtral($model) => $call,
            Self::Qwen2($model) => $call,
            Self::Qwen2Moe($model) => $call,
            Self::Qwen3($model) => $call,
        }
    };
}

impl AutoModel {
    /// Runs the model.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, something that was asked
    /// for cannot be recorded, or a router did not use the experts that the inputs force on it.
    pub fn forward(
        &self,
        inputs: impl Into<TextInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<AutoModelOutput, ForwardError> {
        each!(self, model => model.forward(inputs, kwargs).map(Into::into))
    }
}

impl AutoModelForCausalLM {
    /// Runs the model and computes logits.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, something that was asked
    /// for cannot be recorded, or a router did not use the experts that the inputs force on it.
    pub fn forward(
        &self,
        inputs: impl Into<TextInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<AutoCausalLMOutput, ForwardError> {
        each!(self, model => model.forward(inputs, kwargs).map(Into::into))
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
    ) -> Result<GenerateOutput<AutoCausalLMOutput>, GenerateError> {
        generation::generate(self, inputs, config, kwargs)
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
        callback: impl FnMut(Step<'_, AutoCausalLMOutput>) -> ControlFlow<()>,
    ) -> Result<GenerateOutput<AutoCausalLMOutput>, GenerateError> {
        generation::generate_with(self, inputs, config, kwargs, callback)
    }
}

impl CausalLM for AutoModelForCausalLM {
    type Output = AutoCausalLMOutput;

    fn forward_causal(&self, inputs: TextInputs, kwargs: &ForwardKwargs) -> Result<Self::Output, ForwardError> {
        self.forward(inputs, kwargs)
    }

    fn eos_token_id(&self) -> Option<&TokenIds> {
        each!(self, model => model.config().eos_token_id.as_ref())
    }

    fn pad_token_id(&self) -> Option<i64> {
        each!(self, model => model.config().pad_token_id)
    }
}

impl AutoModelForSequenceClassification {
    /// Runs the model and scores each sequence.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, something that was asked
    /// for cannot be recorded, or a router did not use the experts that the inputs force on it.
    pub fn forward(
        &self,
        inputs: impl Into<TextInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<AutoSequenceClassifierOutput, ForwardError> {
        each!(self, model => model.forward(inputs, kwargs).map(Into::into))
    }
}
