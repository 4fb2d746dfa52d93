use super::WhisperConfig;
use crate::layers::attention::{
    AttentionShape, Extra, cross_attention, cross_project, cross_query, project, self_attention,
};
use crate::layers::{LayerContext, linear, new_linear};
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
    /// Without an encoder, attention to one gives what nothing is projected to; the layer leaves it out.
    pub fn forward(&self, hidden_states: Tensor<3>, context: &mut LayerContext) -> (Tensor<3>, Option<Tensor<4>>) {
        let shape = &self.shape;
        let (output, weights) = if self.is_cross_attention {
            let query = cross_query(shape, &self.q_proj, hidden_states);
            let project = |states| cross_project(shape, [&self.k_proj, &self.v_proj], states);
            cross_attention(shape, query, project, context, Extra::none())
        } else {
            let [query, key, value] = project(shape, [&self.q_proj, &self.k_proj, &self.v_proj], hidden_states);
            self_attention(shape, query, key, value, context)
        };
        (linear(&self.out_proj, output), weights)
    }
}
