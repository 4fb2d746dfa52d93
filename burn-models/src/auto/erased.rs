//! Burn's `Module` and [`Model`] without their generic methods and types, so that any model fits into one box.

use super::{AnyModel, NamedInputs, RunError};
use crate::config::{ConfigError, GeneralConfig};
use crate::generation::{AnyGenerateOutput, GenerationConfig};
use crate::models::Model;
use burn::module::{
    Content, Devices, DisplaySettings, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor,
};
use burn::tensor::Device;
use patching_core::capture::{CapturePlan, OutputTuple};
use patching_core::class::{DynMapper, DynVisitor, Inward, Outward};
use patching_core::patch::{PatchReport, PatchSet};
use patching_core::prelude::*;
use patching_core::weights::{SaveError, SaveOptions, SaveReport};
use std::any::Any;
use std::fmt;
use std::path::Path;

/// Any model, its type hidden.
pub(super) trait ErasedModel: Send + Sync {
    fn any(&self) -> &dyn Any;
    fn any_mut(&mut self) -> &mut dyn Any;
    fn boxed(&self) -> Box<dyn ErasedModel>;
    fn debug(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    fn class_name(&self) -> &'static str;
    fn general_config(&self) -> &GeneralConfig;
    fn config_json(&self) -> serde_json::Value;
    fn input_names(&self) -> &'static [&'static str];
    fn recordable_keys(&self) -> Vec<String>;
    fn generates(&self) -> bool;
    fn forward(&self, inputs: &NamedInputs, device: &Device, kwargs: &ForwardKwargs) -> Result<OutputTuple, RunError>;
    fn generate(
        &self,
        inputs: &NamedInputs,
        device: &Device,
        config: &GenerationConfig,
        kwargs: &ForwardKwargs,
    ) -> Result<AnyGenerateOutput, RunError>;
    fn capture_plan(&self, kwargs: &ForwardKwargs) -> Result<CapturePlan, CaptureError>;
    fn set_attn_implementation(&mut self, name: &str) -> Result<(), ConfigError>;
    fn experts_implementation(&self) -> Option<&str>;
    fn set_experts_implementation(&mut self, name: &str) -> Result<(), ConfigError>;
    fn patch_report(&self, patches: &PatchSet) -> PatchReport;
    fn save_pretrained_with(&self, dir: &Path, options: &SaveOptions) -> Result<SaveReport, SaveError>;

    fn visit(&self, visitor: &mut dyn DynVisitor);
    fn map(self: Box<Self>, mapper: &mut dyn DynMapper) -> Box<dyn ErasedModel>;
    fn to_device(self: Box<Self>, device: &Device) -> Box<dyn ErasedModel>;
    fn fork(self: Box<Self>, device: &Device) -> Box<dyn ErasedModel>;
    fn train(self: Box<Self>) -> Box<dyn ErasedModel>;
    fn materialize(self: Box<Self>) -> Box<dyn ErasedModel>;
    fn valid(&self) -> Box<dyn ErasedModel>;
    fn devices(&self, devices: Devices) -> Devices;
    fn num_params(&self) -> usize;
    fn format(&self, settings: DisplaySettings) -> String;
    fn content(&self, content: Content) -> Option<Content>;
}

/// A model of a known type.
struct Held<M>(M);

pub(super) fn erased<M: Model>(model: M) -> Box<dyn ErasedModel> {
    Box::new(Held(model))
}

impl<M: Model> ErasedModel for Held<M> {
    fn any(&self) -> &dyn Any {
        &self.0
    }
    fn any_mut(&mut self) -> &mut dyn Any {
        &mut self.0
    }
    fn boxed(&self) -> Box<dyn ErasedModel> {
        erased(self.0.clone())
    }
    fn debug(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }

    fn class_name(&self) -> &'static str {
        M::CLASS_NAME
    }
    fn general_config(&self) -> &GeneralConfig {
        self.0.general_config()
    }
    fn config_json(&self) -> serde_json::Value {
        // A config is always a value of JSON.
        serde_json::to_value(self.0.config()).unwrap_or_default()
    }
    fn input_names(&self) -> &'static [&'static str] {
        M::INPUT_NAMES
    }
    fn recordable_keys(&self) -> Vec<String> {
        M::recordable_keys()
    }
    fn generates(&self) -> bool {
        M::GENERATES
    }
    fn forward(&self, inputs: &NamedInputs, device: &Device, kwargs: &ForwardKwargs) -> Result<OutputTuple, RunError> {
        let inputs = inputs.to(M::CLASS_NAME, M::INPUT_NAMES, device)?;
        Ok(self.0.run(inputs, kwargs)?.to_tuple())
    }
    fn generate(
        &self,
        inputs: &NamedInputs,
        device: &Device,
        config: &GenerationConfig,
        kwargs: &ForwardKwargs,
    ) -> Result<AnyGenerateOutput, RunError> {
        let inputs = inputs.to(M::CLASS_NAME, M::INPUT_NAMES, device)?;
        let generated = self.0.generate_any(inputs, config, kwargs);
        Ok(generated.ok_or(RunError::NoGeneration { class: M::CLASS_NAME })??)
    }
    fn capture_plan(&self, kwargs: &ForwardKwargs) -> Result<CapturePlan, CaptureError> {
        self.0.capture_plan(kwargs)
    }
    fn set_attn_implementation(&mut self, name: &str) -> Result<(), ConfigError> {
        self.0.set_attn_implementation(name)
    }
    fn experts_implementation(&self) -> Option<&str> {
        self.0.experts_implementation()
    }
    fn set_experts_implementation(&mut self, name: &str) -> Result<(), ConfigError> {
        self.0.set_experts_implementation(name)
    }
    fn patch_report(&self, patches: &PatchSet) -> PatchReport {
        patches.report(&self.0)
    }
    fn save_pretrained_with(&self, dir: &Path, options: &SaveOptions) -> Result<SaveReport, SaveError> {
        self.0.save_pretrained_with(dir, options)
    }

    fn visit(&self, visitor: &mut dyn DynVisitor) {
        self.0.visit(&mut Outward(visitor));
    }
    fn map(self: Box<Self>, mapper: &mut dyn DynMapper) -> Box<dyn ErasedModel> {
        erased(self.0.map(&mut Outward(mapper)))
    }
    fn to_device(self: Box<Self>, device: &Device) -> Box<dyn ErasedModel> {
        erased(self.0.to_device(device))
    }
    fn fork(self: Box<Self>, device: &Device) -> Box<dyn ErasedModel> {
        erased(self.0.fork(device))
    }
    fn train(self: Box<Self>) -> Box<dyn ErasedModel> {
        erased(self.0.train())
    }
    fn materialize(self: Box<Self>) -> Box<dyn ErasedModel> {
        erased(self.0.materialize())
    }
    fn valid(&self) -> Box<dyn ErasedModel> {
        erased(self.0.valid())
    }
    fn devices(&self, devices: Devices) -> Devices {
        self.0.collect_devices(devices)
    }
    fn num_params(&self) -> usize {
        Module::num_params(&self.0)
    }
    fn format(&self, settings: DisplaySettings) -> String {
        ModuleDisplay::format(&self.0, settings)
    }
    fn content(&self, content: Content) -> Option<Content> {
        self.0.content(content)
    }
}

impl Module for AnyModel {
    fn collect_devices(&self, devices: Devices) -> Devices {
        self.0.devices(devices)
    }
    fn fork(self, device: &Device) -> Self {
        Self(self.0.fork(device))
    }
    fn to_device(self, device: &Device) -> Self {
        Self(self.0.to_device(device))
    }
    fn train(self) -> Self {
        Self(self.0.train())
    }
    fn valid(&self) -> Self {
        Self(self.0.valid())
    }
    fn materialize(self) -> Self {
        Self(self.0.materialize())
    }
    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        self.0.visit(&mut Inward(visitor));
    }
    fn map<T: ModuleMapper>(self, mapper: &mut T) -> Self {
        Self(self.0.map(&mut Inward(mapper)))
    }
}

impl ModuleDisplayDefault for AnyModel {
    fn content(&self, content: Content) -> Option<Content> {
        self.0.content(content)
    }
    fn num_params(&self) -> usize {
        self.0.num_params()
    }
}

impl ModuleDisplay for AnyModel {
    fn format(&self, settings: DisplaySettings) -> String {
        self.0.format(settings)
    }
}

impl fmt::Display for AnyModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.format(DisplaySettings::default()))
    }
}
