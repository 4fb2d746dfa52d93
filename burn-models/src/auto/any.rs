use super::{
    AutoError, AutoModel, AutoModelForCausalLM, AutoModelForSequenceClassification, Family, Head, InputError,
    NamedInputs,
};
use crate::ForwardError;
use crate::config;
use burn::tensor::Device;
use patching_core::capture::{CapturePlan, OutputTuple};
use patching_core::patch::{PatchReport, PatchSet, get_patch_mapping};
use patching_core::prelude::*;
use patching_core::weights::{LoadOptions, LoadReport, SaveError, SaveOptions, SaveReport};
use std::path::Path;
use thiserror::Error;

/// A checkpoint as what it was saved from: the head is known when the program runs, as the family is.
///
/// For programs that take any checkpoint: inputs have names ([`NamedInputs`]), and an output is the tuple of what is
/// present. Each variant holds what can do more. The whole is a module, as [`AutoModel`] is.
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

/// Why a model of any kind did not run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The inputs are not those of the model.
    #[error(transparent)]
    Input(#[from] InputError),

    /// The forward pass failed.
    #[error(transparent)]
    Forward(#[from] ForwardError),
}

/// Calls the same on whichever head it is.
macro_rules! each {
    ($any:expr, $model:ident => $call:expr) => {
        match $any {
            Self::Base($model) => $call,
            Self::CausalLM($model) => $call,
            Self::SequenceClassification($model) => $call,
        }
    };
}

impl AnyModel {
    /// Loads the checkpoint in the folder `dir` into the class that its `architectures` name first.
    ///
    /// # Errors
    ///
    /// When that class is not known, or the checkpoint cannot be loaded.
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
        Self::from_pretrained_as(dir, Head::of(dir)?, device, options)
    }

    /// Loads the checkpoint in the folder `dir` into the class of its family that has `head`.
    ///
    /// # Errors
    ///
    /// When the family is not known, or the checkpoint cannot be loaded.
    pub fn from_pretrained_as(
        dir: impl AsRef<Path>,
        head: Head,
        device: &Device,
        options: &LoadOptions,
    ) -> Result<(Self, LoadReport), AutoError> {
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

    /// The class of the family of `dir` that has `head`, from the config alone, the registered patches applied: its
    /// parameters are fresh, and made when they are first used.
    ///
    /// # Errors
    ///
    /// When the family is not known, the config cannot be read or describes no model that can be constructed, or a patch
    /// cannot be applied.
    pub fn from_config_of(dir: impl AsRef<Path>, head: Head, device: &Device) -> Result<Self, AutoError> {
        Self::from_config_with(dir, head, device, &get_patch_mapping()).map(|(model, _)| model)
    }

    /// [`from_config_of`](Self::from_config_of) with `patches` instead of the registered ones, and what they replaced.
    ///
    /// # Errors
    ///
    /// As [`from_config_of`](Self::from_config_of).
    pub fn from_config_with(
        dir: impl AsRef<Path>,
        head: Head,
        device: &Device,
        patches: &PatchSet,
    ) -> Result<(Self, PatchReport), AutoError> {
        Ok(match head {
            Head::None => {
                let (model, report) = AutoModel::from_config_with(dir, device, patches)?;
                (Self::Base(model), report)
            }
            Head::CausalLM => {
                let (model, report) = AutoModelForCausalLM::from_config_with(dir, device, patches)?;
                (Self::CausalLM(model), report)
            }
            Head::SequenceClassification => {
                let (model, report) = AutoModelForSequenceClassification::from_config_with(dir, device, patches)?;
                (Self::SequenceClassification(model), report)
            }
        })
    }

    /// What `patches` would replace in that class: the model is constructed, but its parameters are never made.
    ///
    /// # Errors
    ///
    /// As [`from_config_of`](Self::from_config_of).
    pub fn patch_plan(
        dir: impl AsRef<Path>,
        head: Head,
        device: &Device,
        patches: &PatchSet,
    ) -> Result<PatchReport, AutoError> {
        match head {
            Head::None => AutoModel::patch_plan(dir, device, patches),
            Head::CausalLM => AutoModelForCausalLM::patch_plan(dir, device, patches),
            Head::SequenceClassification => AutoModelForSequenceClassification::patch_plan(dir, device, patches),
        }
    }

    /// The name of its class.
    pub fn class_name(&self) -> &'static str {
        each!(self, model => model.class_name())
    }

    /// Its family.
    pub fn family(&self) -> Family {
        each!(self, model => model.family())
    }

    /// Its config as JSON.
    pub fn config_json(&self) -> serde_json::Value {
        each!(self, model => model.config_json())
    }

    /// The attention implementation that its config chooses; `None`: the default one.
    pub fn attn_implementation(&self) -> Option<&str> {
        each!(self, model => model.general_config().attn_implementation.as_deref())
    }

    /// How many parameters it has.
    pub fn num_params(&self) -> usize {
        each!(self, model => model.num_params())
    }

    /// What `patches` have replaced in it, and which of their keys match nothing.
    pub fn patch_report(&self, patches: &PatchSet) -> PatchReport {
        each!(self, model => model.patch_report(patches))
    }

    /// The names of its inputs.
    pub fn input_names(&self) -> &'static [&'static str] {
        NamedInputs::TEXT
    }

    /// The keys that it can record, in the order of their declaration.
    pub fn recordable_keys(&self) -> Vec<&'static str> {
        each!(self, model => model.recordable_keys())
    }

    /// Runs the model; the result has the fields that are present, in the reference's order.
    ///
    /// # Errors
    ///
    /// When the inputs are not those of the model or do not fit, the config names an implementation that is not
    /// registered, or something that was asked for cannot be recorded.
    pub fn forward(
        &self,
        inputs: &NamedInputs,
        device: &Device,
        kwargs: &ForwardKwargs,
    ) -> Result<OutputTuple, RunError> {
        let inputs = inputs.to_text(self.class_name(), device)?;
        Ok(each!(self, model => model.forward(inputs, kwargs)?.to_tuple()))
    }

    /// What `kwargs` would record, without running anything.
    ///
    /// # Errors
    ///
    /// When something that is asked for cannot be recorded.
    pub fn capture_plan(&self, kwargs: &ForwardKwargs) -> Result<CapturePlan, CaptureError> {
        each!(self, model => model.capture_plan(kwargs))
    }

    /// Chooses the attention implementation.
    ///
    /// # Errors
    ///
    /// An unknown name is an error that lists the choices.
    pub fn set_attn_implementation(&mut self, name: &str) -> Result<(), config::ConfigError> {
        each!(self, model => model.set_attn_implementation(name))
    }

    /// The experts implementation that it uses; `None` for a model without experts.
    pub fn experts_implementation(&self) -> Option<&str> {
        each!(self, model => model.experts_implementation())
    }

    /// Chooses the implementation of mixtures of experts.
    ///
    /// # Errors
    ///
    /// An unknown name is an error that lists the choices; a model without experts refuses every name.
    pub fn set_experts_implementation(&mut self, name: &str) -> Result<(), config::ConfigError> {
        each!(self, model => model.set_experts_implementation(name))
    }

    /// Saves the model to the folder `dir`.
    ///
    /// # Errors
    ///
    /// When a file cannot be written, or a parameter has no form in a checkpoint.
    pub fn save_pretrained_with(&self, dir: impl AsRef<Path>, options: &SaveOptions) -> Result<SaveReport, SaveError> {
        each!(self, model => model.save_pretrained_with(dir, options))
    }

    /// The model as one that generates text, if it is.
    pub fn as_causal_lm(&self) -> Option<&AutoModelForCausalLM> {
        match self {
            Self::CausalLM(model) => Some(model),
            _ => None,
        }
    }
}
