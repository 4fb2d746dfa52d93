use super::Dinov2Config;
use crate::layers::attention::{AttentionShape, project, self_attention};
use crate::layers::{LayerContext, linear, new_linear};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// DINOv2's attention.
#[derive(Module, Debug)]
pub struct Dinov2Attention {
    /// `[hidden, heads * size]`
    pub q_proj: Linear,
    /// `[hidden, heads * size]`
    pub k_proj: Linear,
    /// `[hidden, heads * size]`
    pub v_proj: Linear,
    /// `[heads * size, hidden]`
    pub o_proj: Linear,
    #[module(skip)]
    shape: AttentionShape,
}

#[module_class]
impl Dinov2Attention {
    /// Fresh parameters for layer `layer_idx`.
    pub fn new(config: &Dinov2Config, layer_idx: usize, init: &Init) -> Self {
        let shape = AttentionShape::plain(layer_idx, config.num_attention_heads, config.head_dim());
        let (hidden, inner) = (config.hidden_size, shape.heads * shape.head_dim);
        let linear = |inputs, outputs, bias| new_linear(inputs, outputs, bias, config.initializer_range, init.device());
        Self {
            q_proj: linear(hidden, inner, config.qkv_bias),
            k_proj: linear(hidden, inner, config.qkv_bias),
            v_proj: linear(hidden, inner, config.qkv_bias),
            o_proj: linear(inner, hidden, true),
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
