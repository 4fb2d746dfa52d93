use super::CLIPEncoderConfig;
use crate::layers::attention::{AttentionShape, project, self_attention};
use crate::layers::{LayerContext, linear, new_linear};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// CLIP's attention.
#[derive(Module, Debug)]
pub struct CLIPAttention {
    /// `[hidden, hidden]`
    pub k_proj: Linear,
    /// `[hidden, hidden]`
    pub v_proj: Linear,
    /// `[hidden, hidden]`
    pub q_proj: Linear,
    /// `[hidden, hidden]`
    pub out_proj: Linear,
    #[module(skip)]
    shape: AttentionShape,
}

#[module_class]
impl CLIPAttention {
    /// Fresh parameters for layer `layer_idx`.
    pub fn new(config: &CLIPEncoderConfig, layer_idx: usize, init: &Init) -> Self {
        let (size, heads) = (config.hidden_size, config.num_attention_heads);
        let std = config.deviations();
        let linear = |std| new_linear(size, size, true, std, init.device());
        Self {
            k_proj: linear(std.into),
            v_proj: linear(std.into),
            q_proj: linear(std.into),
            out_proj: linear(std.out_of),
            shape: AttentionShape::plain(layer_idx, heads, size / heads.max(1)),
        }
    }

    /// `[batch, seq, hidden]` to the same, and the weights `[batch, heads, query, key]` if they are recorded.
    pub fn forward(&self, hidden_states: Tensor<3>, context: &mut LayerContext) -> (Tensor<3>, Option<Tensor<4>>) {
        let [query, key, value] = project(&self.shape, [&self.q_proj, &self.k_proj, &self.v_proj], hidden_states);
        let (output, weights) = self_attention(&self.shape, query, key, value, context);
        (linear(&self.out_proj, output), weights)
    }
}
