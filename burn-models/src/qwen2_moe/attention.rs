use super::Qwen2MoeConfig;
use crate::layers::attention::{AttentionShape, project, self_attention};
use crate::layers::{LayerContext, linear, new_linear};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// Qwen2-MoE's attention.
#[derive(Module, Debug)]
pub struct Qwen2MoeAttention {
    /// `[hidden, heads * size]`
    pub q_proj: Linear,
    /// `[hidden, key heads * size]`
    pub k_proj: Linear,
    /// `[hidden, key heads * size]`
    pub v_proj: Linear,
    /// `[heads * size, hidden]`
    pub o_proj: Linear,
    #[module(skip)]
    shape: AttentionShape,
}

#[module_class]
impl Qwen2MoeAttention {
    /// Fresh parameters for layer `layer_idx`.
    pub fn new(config: &Qwen2MoeConfig, layer_idx: usize, init: &Init) -> Self {
        let shape = AttentionShape::of(config, layer_idx);
        let (queries, keys) = (shape.heads * shape.head_dim, shape.key_heads * shape.head_dim);
        let linear = |inputs, outputs, bias| {
            let std = config.initializer_range;
            new_linear(inputs, outputs, bias, std, init.device())
        };
        Self {
            q_proj: linear(config.hidden_size, queries, config.qkv_bias),
            k_proj: linear(config.hidden_size, keys, config.qkv_bias),
            v_proj: linear(config.hidden_size, keys, config.qkv_bias),
            o_proj: linear(queries, config.hidden_size, false),
            shape,
        }
    }

    /// `[batch, seq, hidden]` to the same, and the weights `[batch, heads, query, key]` if they are recorded.
    pub fn forward(&self, hidden_states: Tensor<3>, context: &mut LayerContext) -> (Tensor<3>, Option<Tensor<4>>) {
        let [query, key, value] = project(&self.shape, [&self.q_proj, &self.k_proj, &self.v_proj], hidden_states);
        let (output, weights) = self_attention(&self.shape, query, key, value, context);
        (linear(&self.o_proj, output), weights)
    }
}
