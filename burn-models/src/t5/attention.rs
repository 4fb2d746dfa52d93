#![allow(non_snake_case, reason = "fields are named as checkpoint keys")]

use super::{T5Config, T5LayerNorm};
use crate::layers::attention::{
    AttentionShape, Extra, cross_attention, cross_project, cross_query, project, self_attention_with,
};
use crate::layers::{LayerContext, RelativeBuckets, linear, new_embedding, new_linear, wide_sum};
use burn::module::Module;
use burn::nn::{Embedding, Linear};
use burn::tensor::Tensor;
use patching_core::capture::is_wanted;
use patching_core::prelude::*;

/// T5's attention: scores are not scaled, and distances of positions add to them.
#[derive(Module, Debug)]
pub struct T5Attention {
    /// `[hidden, heads * size]`
    pub q: Linear,
    /// `[hidden, heads * size]`
    pub k: Linear,
    /// `[hidden, heads * size]`
    pub v: Linear,
    /// `[heads * size, hidden]`
    pub o: Linear,
    /// What distances add to the scores of each head, `[buckets, heads]`; in the first layer's attention to itself only.
    pub relative_attention_bias: Option<Embedding>,
    #[module(skip)]
    shape: AttentionShape,
    #[module(skip)]
    buckets: RelativeBuckets,
}

#[module_class]
impl T5Attention {
    /// Fresh parameters for layer `layer_idx`.
    pub fn new(config: &T5Config, has_relative_attention_bias: bool, layer_idx: usize, init: &Init) -> Self {
        let (hidden, inner) = (config.d_model, config.num_heads * config.d_kv);
        let linear = |inputs, outputs, std| new_linear(inputs, outputs, false, std, init.device());
        let bias = || {
            let (buckets, std) = (config.relative_attention_num_buckets, config.std_of(hidden));
            new_embedding(buckets, config.num_heads, std, init.device())
        };
        Self {
            q: linear(hidden, inner, config.std_of(hidden * config.d_kv)),
            k: linear(hidden, inner, config.std_of(hidden)),
            v: linear(hidden, inner, config.std_of(hidden)),
            o: linear(inner, hidden, config.std_of(inner)),
            relative_attention_bias: has_relative_attention_bias.then(bias),
            shape: AttentionShape { scaling: 1.0, ..AttentionShape::plain(layer_idx, config.num_heads, config.d_kv) },
            buckets: config.buckets(),
        }
    }

    /// `[batch, seq, hidden]` to the same; what positions added to the scores, `[1, heads, query, key]`; and the weights
    /// `[batch, heads, query, key]`, if they are wanted or recorded.
    ///
    /// It looks at the sequence itself, or if `crosses` at what the encoder gave. Without a `position_bias` it makes one, if
    /// it has the table for it.
    pub fn forward(
        &self,
        hidden_states: Tensor<3>,
        crosses: bool,
        position_bias: Option<Tensor<4>>,
        weights_wanted: bool,
        context: &mut LayerContext,
    ) -> (Tensor<3>, Option<Tensor<4>>, Option<Tensor<4>>) {
        let weights_wanted = weights_wanted || is_wanted(2);
        let extra = |position_bias| Extra { position_bias, weights_wanted };
        if crosses {
            let query = cross_query(&self.shape, &self.q, hidden_states);
            let project = |states| cross_project(&self.shape, [&self.k, &self.v], states);
            let extra = extra(position_bias.clone());
            let (output, weights) = cross_attention(&self.shape, query, project, context, extra);
            return (linear(&self.o, output), position_bias, weights);
        }
        let position_bias = position_bias.or_else(|| self.position_bias(hidden_states.dims()[1], context.past()));
        let [query, key, value] = project(&self.shape, [&self.q, &self.k, &self.v], hidden_states);
        let extra = extra(position_bias.clone());
        let (output, weights) = self_attention_with(&self.shape, query, key, value, context, extra);
        (linear(&self.o, output), position_bias, weights)
    }
}

impl T5Attention {
    /// What positions add to the scores of `queries` positions after `past`, `[1, heads, query, key]`.
    fn position_bias(&self, queries: usize, past: usize) -> Option<Tensor<4>> {
        let table = self.relative_attention_bias.as_ref()?;
        Some(self.buckets.bias(table.weight.val(), [queries, past + queries], past))
    }
}

/// T5's attention to the sequence itself: on normed input, added to it.
#[derive(Module, Debug)]
pub struct T5LayerSelfAttention {
    /// Attention.
    pub SelfAttention: Slot<T5Attention>,
    /// Before it.
    pub layer_norm: Slot<T5LayerNorm>,
}

#[module_class]
impl T5LayerSelfAttention {
    /// Fresh parameters for layer `layer_idx`.
    pub fn new(config: &T5Config, has_relative_attention_bias: bool, layer_idx: usize, init: &Init) -> Self {
        Self {
            SelfAttention: T5Attention::slot(config, has_relative_attention_bias, layer_idx, init),
            layer_norm: T5LayerNorm::slot(config.d_model, config.layer_norm_epsilon, init),
        }
    }

    /// As [`T5Attention`].
    pub fn forward(
        &self,
        hidden_states: Tensor<3>,
        position_bias: Option<Tensor<4>>,
        context: &mut LayerContext,
    ) -> (Tensor<3>, Option<Tensor<4>>, Option<Tensor<4>>) {
        let normed = self.layer_norm.forward(hidden_states.clone());
        let (attended, position_bias, weights) =
            self.SelfAttention.forward(normed, false, position_bias, is_wanted(2), context);
        (wide_sum(hidden_states, attended), position_bias, weights)
    }
}

/// T5's attention to what the encoder gave: on normed input, added to it.
#[derive(Module, Debug)]
pub struct T5LayerCrossAttention {
    /// Attention.
    pub EncDecAttention: Slot<T5Attention>,
    /// Before it.
    pub layer_norm: Slot<T5LayerNorm>,
}

#[module_class]
impl T5LayerCrossAttention {
    /// Fresh parameters for layer `layer_idx`.
    pub fn new(config: &T5Config, layer_idx: usize, init: &Init) -> Self {
        Self {
            EncDecAttention: T5Attention::slot(config, false, layer_idx, init),
            layer_norm: T5LayerNorm::slot(config.d_model, config.layer_norm_epsilon, init),
        }
    }

    /// As [`T5Attention`].
    pub fn forward(
        &self,
        hidden_states: Tensor<3>,
        position_bias: Option<Tensor<4>>,
        context: &mut LayerContext,
    ) -> (Tensor<3>, Option<Tensor<4>>, Option<Tensor<4>>) {
        let normed = self.layer_norm.forward(hidden_states.clone());
        let (attended, position_bias, weights) =
            self.EncDecAttention.forward(normed, true, position_bias, is_wanted(2), context);
        (wide_sum(hidden_states, attended), position_bias, weights)
    }
}
