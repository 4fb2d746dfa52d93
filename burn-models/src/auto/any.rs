use super::erased::ErasedModel;
use super::{AutoError, InputError, ModelClass, NamedInputs};
use crate::config;
use crate::generation::{AnyGenerateOutput, GenerateError, GenerationConfig};
use crate::models::Model;
use crate::{ForwardError, models};
use burn::tensor::Device;
use patching_core::capture::{CapturePlan, OutputTuple};
use patching_core::patch::{PatchReport, PatchSet, get_patch_mapping};
use patching_core::prelude::*;
use patching_core::weights::{LoadOptions, LoadReport, SaveError, SaveOptions, SaveReport};
use std::fmt;
use std::path::Path;
use thiserror::Error;

/// A checkpoint as what it was saved from: the class is known when the program runs.
///
/// For programs that take any checkpoint: inputs have names ([`NamedInputs`]), and an output is the tuple of what is
/// present. [`get`](Self::get) gives the model itself, which can do more. The whole is a Burn module like the one that it
/// holds, under the same paths.
pub struct AnyModel(pub(super) Box<dyn ErasedModel>);

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

    /// Nothing was generated.
    #[error(transparent)]
    Generate(#[from] GenerateError),

    /// The model is none that generates text.
    #[error("`{class}` generates no text")]
    NoGeneration {
        /// The model's class.
        class: &'static str,
    },
}

impl AnyModel {
    /// Any model.
    pub fn new<M: models::Model>(model: M) -> Self {
        Self(super::erased::erased(model))
    }

    /// Loads the checkpoint in the folder `dir` into the class that its `architectures` name first, or without any into
    /// the one that its `model_type` stands for.
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
        Self::from_pretrained_as(dir, ModelClass::of_checkpoint(dir)?, device, options)
    }

    /// Loads the checkpoint in the folder `dir` into `class`.
    ///
    /// # Errors
    ///
    /// When the checkpoint cannot be loaded.
    pub fn from_pretrained_as(
        dir: impl AsRef<Path>,
        class: &ModelClass,
        device: &Device,
        options: &LoadOptions,
    ) -> Result<(Self, LoadReport), AutoError> {
        class.load(dir.as_ref(), device, options)
    }

    /// A model of `class` from the config in `dir` alone, the registered patches applied: its parameters are fresh, and
    /// made when they are first used.
    ///
    /// # Errors
    ///
    /// When the config cannot be read or describes no model that can be constructed, or a patch cannot be applied.
    pub fn from_config_of(dir: impl AsRef<Path>, class: &ModelClass, device: &Device) -> Result<Self, AutoError> {
        Self::from_config_with(dir, class, device, &get_patch_mapping()).map(|(model, _)| model)
    }

    /// [`from_config_of`](Self::from_config_of) with `patches` instead of the registered ones, and what they replaced.
    ///
    /// # Errors
    ///
    /// As [`from_config_of`](Self::from_config_of).
    pub fn from_config_with(
        dir: impl AsRef<Path>,
        class: &ModelClass,
        device: &Device,
        patches: &PatchSet,
    ) -> Result<(Self, PatchReport), AutoError> {
        class.construct(dir.as_ref(), device, patches)
    }

    /// What `patches` would replace in a model of `class`: it is constructed, but its parameters are never made.
    ///
    /// # Errors
    ///
    /// As [`from_config_of`](Self::from_config_of).
    pub fn patch_plan(
        dir: impl AsRef<Path>,
        class: &ModelClass,
        device: &Device,
        patches: &PatchSet,
    ) -> Result<PatchReport, AutoError> {
        class.plan(dir.as_ref(), device, patches)
    }

    /// The model, if it is an `M`.
    pub fn get<M: Model>(&self) -> Option<&M> {
        self.0.any().downcast_ref()
    }

    /// The model, if it is an `M`, to change it.
    pub fn get_mut<M: Model>(&mut self) -> Option<&mut M> {
        self.0.any_mut().downcast_mut()
    }

    /// The name of its class.
    pub fn class_name(&self) -> &'static str {
        self.0.class_name()
    }

    /// Its family.
    pub fn model_type(&self) -> &str {
        &self.0.general_config().model_type
    }

    /// Its config as JSON.
    pub fn config_json(&self) -> serde_json::Value {
        self.0.config_json()
    }

    /// The attention implementation that its config chooses; `None`: the default one.
    pub fn attn_implementation(&self) -> Option<&str> {
        self.0.general_config().attn_implementation.as_deref()
    }

    /// How many parameters it has.
    pub fn num_params(&self) -> usize {
        self.0.num_params()
    }

    /// What `patches` have replaced in it, and which of their keys match nothing.
    pub fn patch_report(&self, patches: &PatchSet) -> PatchReport {
        self.0.patch_report(patches)
    }

    /// The names of its inputs.
    pub fn input_names(&self) -> &'static [&'static str] {
        self.0.input_names()
    }

    /// The keys that can be asked for, in the order of their declaration. A model of several parts passes a key on to
    /// each that declares it, and also takes keys with a part's prefix, such as `encoder_attentions`.
    pub fn recordable_keys(&self) -> Vec<String> {
        self.0.recordable_keys()
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
        self.0.forward(inputs, device, kwargs)
    }

    /// Whether it generates text.
    pub fn generates(&self) -> bool {
        self.0.generates()
    }

    /// Continues the inputs, or answers them.
    ///
    /// # Errors
    ///
    /// As [`forward`](Self::forward), and when the model generates no text or the generation config does not fit.
    pub fn generate(
        &self,
        inputs: &NamedInputs,
        device: &Device,
        config: &GenerationConfig,
        kwargs: &ForwardKwargs,
    ) -> Result<AnyGenerateOutput, RunError> {
        self.0.generate(inputs, device, config, kwargs)
    }

    /// What `kwargs` would record, without running anything.
    ///
    /// # Errors
    ///
    /// When something that is asked for cannot be recorded.
    pub fn capture_plan(&self, kwargs: &ForwardKwargs) -> Result<CapturePlan, CaptureError> {
        self.0.capture_plan(kwargs)
    }

    /// Chooses the attention implementation.
    ///
    /// # Errors
    ///
    /// An unknown name is an error that lists the choices.
    pub fn set_attn_implementation(&mut self, name: &str) -> Result<(), config::ConfigError> {
        self.0.set_attn_implementation(name)
    }

    /// The experts implementation that it uses; `None` for a model without experts.
    pub fn experts_implementation(&self) -> Option<&str> {
        self.0.experts_implementation()
    }

    /// Chooses the implementation of mixtures of experts.
    ///
    /// # Errors
    ///
    /// An unknown name is an error that lists the choices; a model without experts refuses every name.
    pub fn set_experts_implementation(&mut self, name: &str) -> Result<(), config::ConfigError> {
        self.0.set_experts_implementation(name)
    }

    /// Saves the model to the folder `dir`.
    ///
    /// # Errors
    ///
    /// When a file cannot be written, or a parameter has no form in a checkpoint.
    pub fn save_pretrained_with(&self, dir: impl AsRef<Path>, options: &SaveOptions) -> Result<SaveReport, SaveError> {
        self.0.save_pretrained_with(dir.as_ref(), options)
    }
}

impl Clone for AnyModel {
    fn clone(&self) -> Self {
        Self(self.0.boxed())
    }
}

impl fmt::Debug for AnyModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.debug(f)
    }
}
