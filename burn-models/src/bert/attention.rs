#![allow(non_snake_case, reason = "fields are named as in checkpoints")]

use super::BertConfig;
use crate::layers::attention::{
    AttentionShape, Extra, cross_attention, cross_project, cross_query, project, self_attention,
};
use crate::layers::{LayerContext, layer_norm, linear, new_layer_norm, new_linear};
use burn::module::Module;
use burn::nn::{LayerNorm, Linear};
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// Queries, keys and values, `[hidden, hidden]` each.
fn projections(config: &BertConfig, init: &Init) -> [Linear; 3] {
    let size = config.hidden_size;
    [(); 3].map(|()| new_linear(size, size, true, config.initializer_range, init.device()))
}

fn shape(config: &BertConfig, layer_idx: usize) -> AttentionShape {
    AttentionShape::plain(layer_idx, config.num_attention_heads, config.head_dim())
}

/// BERT's attention of a sequence to itself.
#[derive(Module, Debug)]
pub struct BertSelfAttention {
    /// `[hidden, hidden]`
    pub query: Linear,
    /// `[hidden, hidden]`
    pub key: Linear,
    /// `[hidden, hidden]`
    pub value: Linear,
    #[module(skip)]
    shape: AttentionShape,
}

#[module_class]
impl BertSelfAttention {
    /// Fresh parameters for layer `layer_idx`.
    pub fn new(config: &BertConfig, layer_idx: usize, init: &Init) -> Self {
        let [query, key, value] = projections(config, init);
        Self { query, key, value, shape: shape(config, layer_idx) }
    }

    /// `[batch, seq, hidden]` to the same, and the weights `[batch, heads, query, key]` if they are recorded.
    pub fn forward(&self, hidden_states: Tensor<3>, context: &mut LayerContext) -> (Tensor<3>, Option<Tensor<4>>) {
        let [query, key, value] = project(&self.shape, [&self.query, &self.key, &self.value], hidden_states);
        self_attention(&self.shape, query, key, value, context)
    }
}

/// BERT's attention of a decoder's sequence to what an encoder gave.
#[derive(Module, Debug)]
pub struct BertCrossAttention {
    /// `[hidden, hidden]`
    pub query: Linear,
    /// `[hidden, hidden]`
    pub key: Linear,
    /// `[hidden, hidden]`
    pub value: Linear,
    #[module(skip)]
    shape: AttentionShape,
}

#[module_class]
impl BertCrossAttention {
    /// Fresh parameters for layer `layer_idx`.
    pub fn new(config: &BertConfig, layer_idx: usize, init: &Init) -> Self {
        let [query, key, value] = projections(config, init);
        Self { query, key, value, shape: shape(config, layer_idx) }
    }

    /// `[batch, seq, hidden]` to the same, and the weights `[batch, heads, query, source]` if they are recorded. Without
    /// an encoder there is nothing to look at: all zeros.
    pub fn forward(&self, hidden_states: Tensor<3>, context: &mut LayerContext) -> (Tensor<3>, Option<Tensor<4>>) {
        let query = cross_query(&self.shape, &self.query, hidden_states);
        let project = |states| cross_project(&self.shape, [&self.key, &self.value], states);
        cross_attention(&self.shape, query, project, context, Extra::none())
    }
}

/// What comes after attention: a projection, added to the block's input, and a norm.
#[derive(Module, Debug)]
pub struct BertSelfOutput {
    /// `[hidden, hidden]`
    pub dense: Linear,
    /// Of the sum.
    pub LayerNorm: LayerNorm,
}

#[module_class]
impl BertSelfOutput {
    /// Fresh parameters.
    pub fn new(config: &BertConfig, init: &Init) -> Self {
        let size = config.hidden_size;
        Self {
            dense: new_linear(size, size, true, config.initializer_range, init.device()),
            LayerNorm: new_layer_norm(size, config.layer_norm_eps, init.device()),
        }
    }

    /// What attention gave, and the input of the block, `[batch, seq, hidden]` both, to the same.
    pub fn forward(&self, hidden_states: Tensor<3>, input_tensor: Tensor<3>) -> Tensor<3> {
        layer_norm(&self.LayerNorm, linear(&self.dense, hidden_states) + input_tensor)
    }
}

/// What a [`BertAttention`] looks at.
#[derive(Module, Debug)]
pub enum BertAttendsTo {
    /// Its own sequence.
    Itself(Slot<BertSelfAttention>),
    /// What an encoder gave.
    Encoder(Slot<BertCrossAttention>),
}

/// BERT's attention block.
#[derive(Module, Debug)]
pub struct BertAttention {
    /// The attention, which is called `self` in checkpoints, whatever it looks at.
    pub self_: BertAttendsTo,
    /// What comes after it.
    pub output: Slot<BertSelfOutput>,
}

#[module_class]
impl BertAttention {
    /// Fresh parameters for layer `layer_idx`.
    pub fn new(config: &BertConfig, layer_idx: usize, is_cross_attention: bool, init: &Init) -> Self {
        let self_ = match is_cross_attention {
            true => BertAttendsTo::Encoder(BertCrossAttention::slot(config, layer_idx, init)),
            false => BertAttendsTo::Itself(BertSelfAttention::slot(config, layer_idx, init)),
        };
        Self { self_, output: BertSelfOutput::slot(config, init) }
    }

    /// `[batch, seq, hidden]` to the same, and the weights `[batch, heads, query, key]` if the attention inside records
    /// them.
    pub fn forward(&self, hidden_states: Tensor<3>, context: &mut LayerContext) -> (Tensor<3>, Option<Tensor<4>>) {
        let (attended, weights) = match &self.self_ {
            BertAttendsTo::Itself(attention) => attention.forward(hidden_states.clone(), context),
            BertAttendsTo::Encoder(attention) => attention.forward(hidden_states.clone(), context),
        };
        (self.output.forward(attended, hidden_states), weights)
    }
}
