use super::{T5Config, T5LayerCrossAttention, T5LayerFF, T5LayerSelfAttention};
use crate::layers::{LayerContext, finite};
use burn::module::Module;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// One of T5's layers: attention, in a decoder attention to the encoder, and the feed-forward block.
#[derive(Module, Debug)]
pub struct T5Block {
    /// Its parts, in order.
    pub layer: Vec<T5BlockPart>,
}

/// A part of a [`T5Block`]. Each adds to what it is given.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant, reason = "all are slots")]
pub enum T5BlockPart {
    /// Attention to the sequence itself.
    SelfAttention(Slot<T5LayerSelfAttention>),
    /// Attention to what the encoder gave; skipped in a call without an encoder.
    CrossAttention(Slot<T5LayerCrossAttention>),
    /// The feed-forward block.
    FeedForward(Slot<T5LayerFF>),
}

#[module_class]
impl T5Block {
    /// Fresh parameters for layer `layer_idx`; the first has the table of relative positions.
    pub fn new(config: &T5Config, has_relative_attention_bias: bool, layer_idx: usize, init: &Init) -> Self {
        let attention = T5LayerSelfAttention::slot(config, has_relative_attention_bias, layer_idx, init);
        let crosses = || T5BlockPart::CrossAttention(T5LayerCrossAttention::slot(config, layer_idx, init));
        let mut layer = vec![T5BlockPart::SelfAttention(attention)];
        layer.extend(config.is_decoder.then(crosses));
        layer.push(T5BlockPart::FeedForward(T5LayerFF::slot(config, init)));
        Self { layer }
    }

    /// `[batch, seq, hidden]` to the same. With it comes what positions add to the scores of attention,
    /// `[1, heads, query, key]`, which the first layer makes and all others are given.
    pub fn forward(
        &self,
        hidden_states: Tensor<3>,
        position_bias: Option<Tensor<4>>,
        context: &mut LayerContext,
    ) -> (Tensor<3>, Option<Tensor<4>>) {
        let (mut hidden_states, mut position_bias) = (hidden_states, position_bias);
        for part in &self.layer {
            hidden_states = match part {
                T5BlockPart::SelfAttention(attention) => {
                    let (attended, bias, _) = attention.forward(hidden_states, position_bias, context);
                    position_bias = bias;
                    attended
                }
                T5BlockPart::CrossAttention(_) if !context.has_encoder() => continue,
                T5BlockPart::CrossAttention(attention) => attention.forward(hidden_states, None, context).0,
                T5BlockPart::FeedForward(feed_forward) => feed_forward.forward(hidden_states),
            };
            hidden_states = finite(hidden_states);
        }
        (hidden_states, position_bias)
    }
}
