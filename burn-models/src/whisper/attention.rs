use super::WhisperConfig;
use crate::layers::attention::{AttentionShape, Extra, cross_attention, project, self_attention};
use crate::layers::{LayerContext, linear, new_linear, split_heads};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// Whisper's attention: of a sequence to itself, or of the decoder's to what the encoder gave.
#[derive(Module, Debug)]
pub struct WhisperAttention {
    /// `[hidden, hidden]`, without a bias.
    pub k_proj: Linear,
    /// `[hidden, hidden]`
    pub v_proj: Linear,
    /// `[hidden, hidden]`
    pub q_proj: Linear,
    /// `[hidden, hidden]`
    pub out_proj: Linear,
    #[module(skip)]
    shape: AttentionShape,
    #[module(skip)]
    is_cross_attention: bool,
}

#[module_class]
impl WhisperAttention {
    /// Fresh parameters for layer `layer_idx`, with `heads` heads.
    pub fn new(config: &WhisperConfig, heads: usize, layer_idx: usize, is_cross_attention: bool, init: &Init) -> Self {
        let size = config.d_model;
        let linear = |bias| new_linear(size, size, bias, config.init_std, init.device());
        Self {
            k_proj: linear(false),
            v_proj: linear(true),
            q_proj: linear(true),
            out_proj: linear(true),
            shape: AttentionShape::plain(layer_idx, heads, size / heads.max(1)),
            is_cross_attention,
        }
    }

    /// `[batch, seq, hidden]` to the same, and the weights `[batch, heads, query, key]` if they are recorded.
    ///
    /// Without an encoder there is nothing that attention to it could add.
    pub fn forward(&self, hidden_states: Tensor<3>, context: &mut LayerContext) -> (Tensor<3>, Option<Tensor<4>>) {
        let shape = &self.shape;
        if !self.is_cross_attention {
            let [query, key, value] = project(shape, [&self.q_proj, &self.k_proj, &self.v_proj], hidden_states);
            let (output, weights) = self_attention(shape, query, key, value, context);
            return (linear(&self.out_proj, output), weights);
        }
        let query = split_heads(linear(&self.q_proj, hidden_states.clone()), shape.heads);
        let project = |states: Tensor<3>| {
            [&self.k_proj, &self.v_proj].map(|layer| split_heads(linear(layer, states.clone()), shape.heads))
        };
        match cross_attention(shape, query, project, context, Extra::none()) {
            Some((output, weights)) => (linear(&self.out_proj, output), weights),
            None => (hidden_states.zeros_like(), None),
        }
    }
}
