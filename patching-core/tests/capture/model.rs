//! A small encoder with self- and cross-attention, written as a user would write it.

use burn::module::Param;
use burn::nn::{Linear, LinearConfig};
use burn::prelude::*;
use patching_core::capture::is_wanted;
use patching_core::prelude::*;

#[derive(Clone, Debug, Default, ConfigDefaults)]
pub struct ToyConfig {
    pub width: usize,
    pub layers: usize,
    pub output_hidden_states: Option<bool>,
    pub output_attentions: Option<Flag>,
    pub return_dict: Option<bool>,
    pub tie_last_hidden_states: Option<bool>,
    pub use_cache: Option<bool>,
}

impl ToyConfig {
    pub fn tiny() -> Self {
        Self { width: 4, layers: 3, ..Self::default() }
    }
}

/// What a call is to do besides its work, and what it saw.
#[derive(Debug, Default)]
pub struct Context {
    pub memory: Option<Tensor<3>>,
    pub skip: Option<usize>,
    pub panic_at: Option<usize>,
    pub without_weights: bool,
    /// Paths are not known to a layer: `(layer, wanted)` in order of calls.
    pub wanted: std::cell::RefCell<Vec<bool>>,
}

#[derive(Module, Debug)]
pub struct ToyAttention {
    proj: Linear,
}

#[module_class]
impl ToyAttention {
    pub fn new(config: &ToyConfig, init: &Init) -> Self {
        Self { proj: LinearConfig::new(config.width, config.width).init(init.device()) }
    }

    pub fn forward(&self, hidden_states: Tensor<3>, context: &Context) -> (Tensor<3>, Option<Tensor<3>>) {
        let wanted = is_wanted(1);
        context.wanted.borrow_mut().push(wanted);
        let scores = self.proj.forward(hidden_states.clone()).matmul(hidden_states.clone().swap_dims(1, 2));
        let weights = burn::tensor::activation::softmax(scores, 2);
        let attended = weights.clone().matmul(hidden_states);
        (attended, (wanted && !context.without_weights).then_some(weights))
    }
}

#[derive(Module, Debug)]
pub struct ToyBlock {
    pub self_attn: Slot<ToyAttention>,
    pub crossattention: Slot<ToyAttention>,
    scale: Param<Tensor<1>>,
    layer_idx: usize,
}

#[module_class]
impl ToyBlock {
    pub fn new(config: &ToyConfig, layer_idx: usize, init: &Init) -> Self {
        Self {
            self_attn: ToyAttention::slot(config, init),
            crossattention: ToyAttention::slot(config, init),
            scale: Param::from_tensor(Tensor::ones([config.width], init.device())),
            layer_idx,
        }
    }

    pub fn forward(&self, hidden_states: Tensor<3>, context: &Context) -> Tensor<3> {
        assert_ne!(context.panic_at, Some(self.layer_idx), "asked to");
        let (attended, _) = self.self_attn.forward(hidden_states.clone(), context);
        let hidden_states = hidden_states + attended;
        match &context.memory {
            Some(memory) => {
                let (crossed, _) = self.crossattention.forward(memory.clone(), context);
                (hidden_states + crossed) * self.scale.val().unsqueeze()
            }
            None => hidden_states * self.scale.val().unsqueeze(),
        }
    }
}

impl ToyBlock {
    #[cfg(feature = "autodiff")]
    pub fn scale(&self) -> Tensor<1> {
        self.scale.val()
    }
}

#[derive(ModelOutput, Clone, Debug)]
pub struct ToyOutput {
    pub last_hidden_state: Tensor<3>,
    pub cache: Option<Tensor<1>>,
    pub attentions: Captured<Tensor<3>>,
    pub hidden_states: Captured<Tensor<3>>,
    pub cross_attentions: Captured<Tensor<3>>,
}

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(
    hidden_states = ToyBlock,
    attentions = ToyAttention,
    cross_attentions = OutputRecorder(ToyAttention, layer_name = "crossattention", index = 1),
)]
pub struct ToyModel {
    pub layers: Vec<Slot<ToyBlock>>,
    norm: Param<Tensor<1>>,
    #[module(skip)]
    pub config: ToyConfig,
    recorders: OutputRecorders,
}

impl ToyModel {
    pub fn new(config: &ToyConfig, init: &Init) -> Self {
        Self {
            layers: (0..config.layers).map(|layer| ToyBlock::slot(config, layer, init)).collect(),
            norm: Param::from_tensor(Tensor::ones([config.width], init.device()) * 0.5),
            config: config.clone(),
            recorders: OutputRecorders::default(),
        }
    }

    pub fn tiny() -> Self {
        Self::new(&ToyConfig::tiny(), &Init::new(&device()))
    }

    /// hidden states `[batch, seq, width]`
    #[merge_with_config_defaults]
    #[capture_outputs]
    pub fn forward(
        &self,
        hidden_states: Tensor<3>,
        context: &Context,
        kwargs: &ForwardKwargs,
    ) -> Result<ToyOutput, CaptureError> {
        let mut hidden_states = hidden_states;
        for (layer, block) in self.layers.iter().enumerate() {
            if context.skip == Some(layer) {
                continue;
            }
            hidden_states = block.forward(hidden_states, context);
        }
        let mut output = ToyOutput::new(hidden_states * self.norm.val().unsqueeze());
        output.cache = kwargs.get_use_cache().unwrap_or(false).then(|| self.norm.val());
        Ok(output)
    }
}

pub fn device() -> Device {
    Device::flex()
}

pub fn input() -> Tensor<3> {
    Tensor::<1>::from_floats([0.1, -0.4, 0.3, 0.8, 0.5, 0.2, -0.7, 0.6], &device()).reshape([1, 2, 4])
}

pub fn with_memory() -> Context {
    Context { memory: Some(input() * 0.3), ..Context::default() }
}

#[cfg(feature = "autodiff")]
pub fn with_memory_on(device: &Device) -> Context {
    Context { memory: Some(input().to_device(device) * 0.3), ..Context::default() }
}

/// The paths of what was recorded, in order.
pub fn paths<T>(captured: &Captured<T>) -> Vec<(usize, String)> {
    captured.iter().map(|(position, path, _)| (position, path.to_owned())).collect()
}

pub fn bits<const D: usize>(tensor: &Tensor<D>) -> Vec<u32> {
    tensor.to_data().try_to_vec::<f32>().expect("f32").into_iter().map(f32::to_bits).collect()
}
