//! A model of your own: annotated once, every intermediate value on request. The README shows its parts.
//!
//! `cargo run --example annotated_model`

use burn::nn::{Embedding, EmbeddingConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::prelude::*;
use burn::tensor::activation::softmax;
use burnlens::prelude::*;

/// What the caller does not say is taken from here.
#[derive(Clone, Debug, Default, ConfigDefaults)]
pub struct MyConfig {
    pub vocab_size: usize,
    pub hidden_size: usize,
    pub num_layers: usize,
    pub use_cache: Option<bool>,
    pub output_attentions: Option<bool>,
}

/// What all layers of one call share.
pub struct LayerContext {
    /// `[batch, memory, hidden]`
    pub encoder_hidden_states: Tensor<3>,
}

#[derive(Module, Debug)]
pub struct MyAttention {
    query: Linear,
    key: Linear,
    value: Linear,
}

#[module_class]
impl MyAttention {
    pub fn new(config: &MyConfig, init: &Init) -> Self {
        let linear = || LinearConfig::new(config.hidden_size, config.hidden_size).init(init.device());
        Self { query: linear(), key: linear(), value: linear() }
    }

    /// `hidden_states` `[batch, seq, hidden]` looks at `memory` `[batch, other, hidden]`; gives the result and the
    /// weights `[batch, seq, other]`.
    pub fn forward(&self, hidden_states: Tensor<3>, memory: Tensor<3>) -> (Tensor<3>, Tensor<3>) {
        let scores = self.query.forward(hidden_states).matmul(self.key.forward(memory.clone()).swap_dims(1, 2));
        let weights = softmax(scores, 2);
        (weights.clone().matmul(self.value.forward(memory)), weights)
    }
}

#[derive(Module, Debug)]
pub struct MyDecoderBlock {
    norm: LayerNorm,
    self_attn: Slot<MyAttention>,
    crossattention: Slot<MyAttention>,
}

#[module_class]
impl MyDecoderBlock {
    pub fn new(config: &MyConfig, init: &Init) -> Self {
        Self {
            norm: LayerNormConfig::new(config.hidden_size).init(init.device()),
            self_attn: MyAttention::slot(config, init),
            crossattention: MyAttention::slot(config, init),
        }
    }

    pub fn forward(&self, hidden_states: Tensor<3>, context: &LayerContext) -> Tensor<3> {
        let normed = self.norm.forward(hidden_states.clone());
        let (attended, _) = self.self_attn.forward(normed.clone(), normed);
        let hidden_states = hidden_states + attended;
        let (attended, _) = self.crossattention.forward(hidden_states.clone(), context.encoder_hidden_states.clone());
        hidden_states + attended
    }
}

#[derive(ModelOutput, Clone, Debug)]
pub struct MyOutput {
    pub last_hidden_state: Tensor<3>,
    pub hidden_states: Captured<Tensor<3>>,
    pub attentions: Captured<Tensor<3>>,
    pub cross_attentions: Captured<Tensor<3>>,
}

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(
    hidden_states = MyDecoderBlock,
    attentions = MyAttention,
    cross_attentions = OutputRecorder(MyAttention, layer_name = "crossattention", index = 1),
)]
pub struct MyModel {
    embed_tokens: Embedding,
    layers: Vec<Slot<MyDecoderBlock>>,
    norm: LayerNorm,
    #[module(skip)]
    config: MyConfig,
    recorders: OutputRecorders,
}

impl MyModel {
    pub fn new(config: &MyConfig, init: &Init) -> Self {
        Self {
            embed_tokens: EmbeddingConfig::new(config.vocab_size, config.hidden_size).init(init.device()),
            layers: (0..config.num_layers).map(|_| MyDecoderBlock::slot(config, init)).collect(),
            norm: LayerNormConfig::new(config.hidden_size).init(init.device()),
            config: config.clone(),
            recorders: OutputRecorders::default(),
        }
    }

    #[merge_with_config_defaults]
    #[capture_outputs]
    pub fn forward(
        &self,
        input_ids: Tensor<2, Int>,
        encoder_hidden_states: Tensor<3>,
        kwargs: &ForwardKwargs,
    ) -> Result<MyOutput, CaptureError> {
        let context = LayerContext { encoder_hidden_states };
        let mut hidden_states = self.embed_tokens.forward(input_ids);
        for layer in &self.layers {
            hidden_states = layer.forward(hidden_states, &context);
        }
        Ok(MyOutput::new(self.norm.forward(hidden_states)))
    }
}

#[allow(clippy::print_stdout, reason = "it shows what it does")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::flex();
    let config = MyConfig { vocab_size: 32, hidden_size: 16, num_layers: 4, ..MyConfig::default() };
    let model = MyModel::new(&config, &Init::new(&device));
    let input_ids = Tensor::from_data([[3, 1, 4, 1, 5]], &device);
    let memory = Tensor::random([1, 7, 16], burn::tensor::Distribution::Default, &device);

    let kwargs = ForwardKwargs::new().output_hidden_states([0, -1]).output_attentions(true);
    let output = model.forward(input_ids.clone(), memory.clone(), &kwargs)?;
    for (name, captured) in [
        ("hidden_states", &output.hidden_states),
        ("attentions", &output.attentions),
        ("cross_attentions", &output.cross_attentions),
    ] {
        println!("{name}: {} values", captured.len());
        for (position, path, tensor) in captured.iter() {
            println!("  {position}  {path:26}  {:?}", tensor.dims());
        }
    }
    assert_eq!((output.hidden_states.len(), output.hidden_states.iter().count()), (5, 2));
    assert_eq!((output.attentions.len(), output.cross_attentions.len()), (4, 4));

    // only the first two layers run
    let mut captures = model.forward_captures(input_ids, memory, &ForwardKwargs::new().output_hidden_states(2))?;
    let second = captures.take::<Tensor<3>>("hidden_states")?;
    println!("hidden state 2 alone: {:?}", second.at(2)?.dims());
    Ok(())
}
