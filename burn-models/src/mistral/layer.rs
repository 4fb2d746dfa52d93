use super::{MistralAttention, MistralConfig, MistralMLP};
use crate::layers::{LayerContext, rms_norm_class};
use burn::module::Module;
use burn::tensor::Tensor;
use patching_core::prelude::*;

rms_norm_class!(
    /// Mistral's norm.
    MistralRMSNorm
);

/// One of Mistral's layers: attention, then the feed-forward block, each on normed input and added to it.
#[derive(Module, Debug)]
pub struct MistralDecoderLayer {
    /// Attention.
    pub self_attn: Slot<MistralAttention>,
    /// The feed-forward block.
    pub mlp: Slot<MistralMLP>,
    /// Before attention.
    pub input_layernorm: Slot<MistralRMSNorm>,
    /// Before the feed-forward block.
    pub post_attention_layernorm: Slot<MistralRMSNorm>,
}

#[module_class]
impl MistralDecoderLayer {
    /// Fresh parameters for layer `layer_idx`.
    pub fn new(config: &MistralConfig, layer_idx: usize, init: &Init) -> Self {
        let norm = || MistralRMSNorm::slot(config.hidden_size, config.rms_norm_eps, init);
        Self {
            self_attn: MistralAttention::slot(config, layer_idx, init),
            mlp: MistralMLP::slot(config, init),
            input_layernorm: norm(),
            post_attention_layernorm: norm(),
        }
    }

    /// `[batch, seq, hidden]` to the same.
    pub fn forward(&self, hidden_states: Tensor<3>, context: &mut LayerContext) -> Tensor<3> {
        let normed = self.input_layernorm.forward(hidden_states.clone());
        let (attended, _) = self.self_attn.forward(normed, context);
        let hidden_states = hidden_states + attended;
        let normed = self.post_attention_layernorm.forward(hidden_states.clone());
        hidden_states + self.mlp.forward(normed)
    }
}
