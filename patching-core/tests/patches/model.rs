//! A model with the classes that the documents warn about, as somebody else would have written it.

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use patching_core::capture::is_wanted;
use patching_core::prelude::*;
use patching_core::weights::{PreTrainedModel, PretrainedConfig};
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Clone, Debug, Default, Serialize, Deserialize, ConfigDefaults)]
pub struct BertConfig {
    pub model_type: String,
    pub width: usize,
    pub layers: usize,
    pub mega: bool,
    pub output_attentions: Option<bool>,
}

impl BertConfig {
    pub fn tiny() -> Self {
        Self { model_type: "toy_bert".into(), width: 4, layers: 3, ..Self::default() }
    }
}

impl PretrainedConfig for BertConfig {
    const MODEL_TYPES: &'static [&'static str] = &["toy_bert"];
    fn set_attn_implementation(&mut self, _: &str) {}
    fn attn_implementation(&self) -> Option<&str> {
        None
    }
}

fn linear(config: &BertConfig, init: &Init) -> Linear {
    LinearConfig::new(config.width, config.width).init(init.device())
}

/// Hidden states and weights, both `[batch, seq, …]`.
pub type Attended = (Tensor<3>, Option<Tensor<3>>);

#[derive(Module, Debug)]
pub struct BertSelfAttention {
    pub query: Linear,
}

#[module_class]
impl BertSelfAttention {
    pub fn new(config: &BertConfig, init: &Init) -> Self {
        Self { query: linear(config, init) }
    }
    pub fn forward(&self, x: Tensor<3>) -> Attended {
        let scores = self.query.forward(x.clone()).matmul(x.clone().swap_dims(1, 2));
        (scores.clone().matmul(x), is_wanted(1).then_some(scores))
    }
}

#[derive(Module, Debug)]
pub struct BertCrossAttention {
    pub query: Linear,
}

#[module_class]
impl BertCrossAttention {
    pub fn new(config: &BertConfig, init: &Init) -> Self {
        Self { query: linear(config, init) }
    }
    pub fn forward(&self, x: Tensor<3>) -> Attended {
        (self.query.forward(x), None)
    }
}

/// The outer attention: it wraps one of the inner ones.
#[derive(Module, Debug)]
pub struct BertAttention {
    #[allow(clippy::struct_field_names, reason = "as in the reference")]
    pub inner_self: Slot<BertSelfAttention>,
    pub output: Linear,
}

#[module_class]
impl BertAttention {
    pub fn new(config: &BertConfig, layer: usize, init: &Init) -> Self {
        let _ = layer;
        Self { inner_self: BertSelfAttention::slot(config, init), output: linear(config, init) }
    }
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        self.output.forward(self.inner_self.forward(x).0)
    }
}

#[derive(Module, Debug)]
pub struct BertLayer {
    pub attention: Slot<BertAttention>,
}

#[module_class]
impl BertLayer {
    pub fn new(config: &BertConfig, layer: usize, init: &Init) -> Self {
        Self { attention: BertAttention::slot(config, layer, init) }
    }
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        x.clone() + self.attention.forward(x)
    }
}

#[derive(Module, Debug)]
pub struct MegatronBertLayer {
    pub attention: Slot<BertAttention>,
}

#[module_class]
impl MegatronBertLayer {
    pub fn new(config: &BertConfig, layer: usize, init: &Init) -> Self {
        Self { attention: BertAttention::slot(config, layer, init) }
    }
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        x.clone() + self.attention.forward(x)
    }
}

#[derive(ModelOutput, Clone, Debug)]
pub struct BertOutput {
    pub last_hidden_state: Tensor<3>,
    pub hidden_states: Captured<Tensor<3>>,
    pub attentions: Captured<Tensor<3>>,
}

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = [BertLayer, MegatronBertLayer], attentions = BertSelfAttention)]
pub struct BertModel {
    pub layers: Vec<Slot<BertLayer>>,
    pub mega: Vec<Slot<MegatronBertLayer>>,
    #[module(skip)]
    pub config: BertConfig,
    pub recorders: OutputRecorders,
}

impl BertModel {
    #[capture_outputs(tie_last_hidden_states = false)]
    pub fn forward(&self, x: Tensor<3>, kwargs: &ForwardKwargs) -> Result<BertOutput, CaptureError> {
        let mut x = x;
        for layer in &self.layers {
            x = layer.forward(x);
        }
        for layer in &self.mega {
            x = layer.forward(x);
        }
        Ok(BertOutput::new(x))
    }
}

impl PreTrainedModel for BertModel {
    type Config = BertConfig;
    const CLASS_NAME: &'static str = "BertModel";
    const BASE_MODEL_PREFIX: &'static str = "bert";

    fn new(config: &BertConfig, init: &Init) -> Self {
        let (plain, mega) = if config.mega { (0, config.layers) } else { (config.layers, 0) };
        Self {
            layers: (0..plain).map(|layer| BertLayer::slot(config, layer, init)).collect(),
            mega: (0..mega).map(|layer| MegatronBertLayer::slot(config, layer, init)).collect(),
            config: config.clone(),
            recorders: OutputRecorders::default(),
        }
    }
    fn config(&self) -> &BertConfig {
        &self.config
    }
}

// What a user writes in a crate of their own.

/// Gives back what it gets.
#[derive(Module, Debug)]
pub struct NoAttention {}

#[replaces(BertSelfAttention, BertCrossAttention)]
impl NoAttention {
    pub fn new(_config: &BertConfig, _init: &Init) -> Self {
        Self {}
    }
    pub fn forward(&self, x: Tensor<3>) -> Attended {
        let weights = is_wanted(1).then(|| x.clone() * 0.0);
        (x, weights)
    }
}

/// Wraps the original.
#[derive(Module, Debug)]
pub struct Wrapped {
    pub original: Slot<BertSelfAttention>,
}

#[replaces(BertSelfAttention)]
impl Wrapped {
    pub fn new(config: &BertConfig, init: &Init) -> Self {
        Self { original: BertSelfAttention::slot(config, init) }
    }
    pub fn forward(&self, x: Tensor<3>) -> Attended {
        self.original.forward(x)
    }
}

/// Wraps whole layers, whatever slots they have inside.
#[derive(Module, Debug)]
pub struct WrappedLayer {
    pub original: Slot<BertLayer>,
}

#[replaces(BertLayer)]
impl WrappedLayer {
    pub fn new(config: &BertConfig, layer: usize, init: &Init) -> Self {
        Self { original: BertLayer::slot(config, layer, init) }
    }
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        self.original.forward(x)
    }
}

/// One type for several numbers.
#[derive(Module, Debug)]
pub struct Scaled<const BY: usize> {}

#[replaces(BertLayer, MegatronBertLayer)]
impl<const BY: usize> Scaled<BY> {
    pub fn new<Config>(_config: &Config, _layer: usize, _init: &Init) -> Self {
        Self {}
    }
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        x * BY as f64
    }
}

pub fn device() -> Device {
    Device::flex()
}

pub fn input() -> Tensor<3> {
    Tensor::<1, burn::tensor::Int>::arange(0..8, &device()).float().reshape([1, 2, 4]) / 8.0
}

pub fn plain(config: &BertConfig) -> BertModel {
    BertModel::new(config, &Init::new(&device()))
}

/// Short names of what the slots hold, by path.
pub fn held(model: &BertModel) -> Vec<String> {
    let short = |name: &'static str| name.rsplit("::").next().unwrap_or(name);
    let slots = patching_core::class::all_slots(model);
    slots.iter().map(|slot| format!("{} {}", slot.path, short(slot.implementation))).collect()
}

/// For tests that use the registry: one at a time, on an empty registry, which is empty again afterwards.
pub struct Registry {
    _guard: MutexGuard<'static, ()>,
}

impl Registry {
    pub fn empty() -> Self {
        static LOCK: Mutex<()> = Mutex::new(());
        let guard = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        clear_patch_mapping();
        Self { _guard: guard }
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        clear_patch_mapping();
    }
}
