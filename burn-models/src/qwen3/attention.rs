use super::{Qwen3Config, Qwen3RMSNorm};
use crate::layers::attention::{AttentionShape, self_attention};
use crate::layers::{LayerContext, linear, new_linear, split_heads};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// Qwen3's attention.
#[derive(Module, Debug)]
pub struct Qwen3Attention {
    /// `[hidden, heads * size]`
    pub q_proj: Linear,
    /// `[hidden, key heads * size]`
    pub k_proj: Linear,
    /// `[hidden, key heads * size]`
    pub v_proj: Linear,
    /// `[heads * size, hidden]`
    pub o_proj: Linear,
    /// On each head of the queries.
    pub q_norm: Slot<Qwen3RMSNorm>,
    /// On each head of the keys.
    pub k_norm: Slot<Qwen3RMSNorm>,
    #[module(skip)]
    shape: AttentionShape,
}

#[module_class]
impl Qwen3Attention {
    /// Fresh parameters for layer `layer_idx`.
    pub fn new(config: &Qwen3Config, layer_idx: usize, init: &Init) -> Self {
        let shape = AttentionShape::of(config, layer_idx);
        let (queries, keys) = (shape.heads * shape.head_dim, shape.key_heads * shape.head_dim);
        let linear = |inputs, outputs| {
            let std = config.initializer_range;
            new_linear(inputs, outputs, config.attention_bias, std, init.device())
        };
        let norm = || Qwen3RMSNorm::slot(shape.head_dim, config.rms_norm_eps, init);
        Self {
            q_proj: linear(config.hidden_size, queries),
            k_proj: linear(config.hidden_size, keys),
            v_proj: linear(config.hidden_size, keys),
            o_proj: linear(queries, config.hidden_size),
            q_norm: norm(),
            k_norm: norm(),
            shape,
        }
    }

    /// `[batch, seq, hidden]` to the same, and the weights `[batch, heads, query, key]` if they are recorded.
    pub fn forward(&self, hidden_states: Tensor<3>, context: &mut LayerContext) -> (Tensor<3>, Option<Tensor<4>>) {
        let (heads, key_heads) = (self.shape.heads, self.shape.key_heads);
        let query = normed_heads(&self.q_norm, linear(&self.q_proj, hidden_states.clone()), heads);
        let key = normed_heads(&self.k_norm, linear(&self.k_proj, hidden_states.clone()), key_heads);
        let value = split_heads(linear(&self.v_proj, hidden_states), key_heads);
        let (output, weights) = self_attention(&self.shape, query, key, value, context);
        (linear(&self.o_proj, output), weights)
    }
}

/// Norms each head of `[batch, seq, heads * size]`, and splits them to `[batch, heads, seq, size]`.
fn normed_heads(norm: &Slot<Qwen3RMSNorm>, x: Tensor<3>, heads: usize) -> Tensor<4> {
    let [batch, seq, width] = x.dims();
    let rows = x.reshape([batch, seq * heads, width / heads.max(1)]);
    split_heads(norm.forward(rows).reshape([batch, seq, width]), heads)
}
