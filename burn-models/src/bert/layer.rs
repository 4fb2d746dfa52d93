#![allow(non_snake_case, reason = "fields are named as in checkpoints")]

use super::{BertAttention, BertConfig};
use crate::layers::{Activation, LayerContext, layer_norm, linear, new_layer_norm, new_linear};
use burn::module::Module;
use burn::nn::{LayerNorm, Linear};
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// The first half of BERT's feed-forward block.
#[derive(Module, Debug)]
pub struct BertIntermediate {
    /// `[hidden, intermediate]`
    pub dense: Linear,
    #[module(skip)]
    intermediate_act_fn: Activation,
}

#[module_class]
impl BertIntermediate {
    /// Fresh parameters.
    pub fn new(config: &BertConfig, init: &Init) -> Self {
        let (inner, std) = (config.intermediate_size, config.initializer_range);
        Self {
            dense: new_linear(config.hidden_size, inner, true, std, init.device()),
            intermediate_act_fn: config.hidden_act,
        }
    }

    /// `[batch, seq, hidden]` to `[batch, seq, intermediate]`.
    pub fn forward(&self, hidden_states: Tensor<3>) -> Tensor<3> {
        self.intermediate_act_fn.forward(linear(&self.dense, hidden_states))
    }
}

/// The second half of BERT's feed-forward block: a projection, added to the block's input, and a norm.
#[derive(Module, Debug)]
pub struct BertOutput {
    /// `[intermediate, hidden]`
    pub dense: Linear,
    /// Of the sum.
    pub LayerNorm: LayerNorm,
}

#[module_class]
impl BertOutput {
    /// Fresh parameters.
    pub fn new(config: &BertConfig, init: &Init) -> Self {
        let (inner, std) = (config.intermediate_size, config.initializer_range);
        Self {
            dense: new_linear(inner, config.hidden_size, true, std, init.device()),
            LayerNorm: new_layer_norm(config.hidden_size, config.layer_norm_eps, init.device()),
        }
    }

    /// What the first half gave, `[batch, seq, intermediate]`, and the input of the block, `[batch, seq, hidden]`, to
    /// the latter's shape.
    pub fn forward(&self, hidden_states: Tensor<3>, input_tensor: Tensor<3>) -> Tensor<3> {
        layer_norm(&self.LayerNorm, linear(&self.dense, hidden_states) + input_tensor)
    }
}

/// One of BERT's layers: attention, in some decoders attention to an encoder, and the feed-forward block.
#[derive(Module, Debug)]
pub struct BertLayer {
    /// Attention.
    pub attention: Slot<BertAttention>,
    /// Attention to what an encoder gave, where the config says so.
    pub crossattention: Option<Slot<BertAttention>>,
    /// The first half of the feed-forward block.
    pub intermediate: Slot<BertIntermediate>,
    /// The second half.
    pub output: Slot<BertOutput>,
}

#[module_class]
impl BertLayer {
    /// Fresh parameters for layer `layer_idx`.
    pub fn new(config: &BertConfig, layer_idx: usize, init: &Init) -> Self {
        let attention = |is_cross_attention| BertAttention::slot(config, layer_idx, is_cross_attention, init);
        Self {
            attention: attention(false),
            crossattention: config.add_cross_attention.then(|| attention(true)),
            intermediate: BertIntermediate::slot(config, init),
            output: BertOutput::slot(config, init),
        }
    }

    /// `[batch, seq, hidden]` to the same.
    pub fn forward(&self, hidden_states: Tensor<3>, context: &mut LayerContext) -> Tensor<3> {
        let (mut attended, _) = self.attention.forward(hidden_states, context);
        if let Some(crossattention) = &self.crossattention
            && context.has_encoder()
        {
            (attended, _) = crossattention.forward(attended, context);
        }
        self.output.forward(self.intermediate.forward(attended.clone()), attended)
    }
}
