use super::{LlamaAttention, LlamaConfig, LlamaMLP};
use crate::layers::{LayerContext, rms_norm_class};
use burn::module::Module;
use burn::tensor::Tensor;
use patching_core::prelude::*;

rms_norm_class!(
    /// Llama's norm.
    LlamaRMSNorm
);

/// One of Llama's layers: attention, then the feed-forward block, each on normed input and added to it.
#[derive(Module, Debug)]
pub struct LlamaDecoderLayer {
    /// Attention.
    pub self_attn: Slot<LlamaAttention>,
    /// The feed-forward block.
    pub mlp: Slot<LlamaMLP>,
    /// Before attention.
    pub input_layernorm: Slot<LlamaRMSNorm>,
    /// Before the feed-forward block.
    pub post_attention_layernorm: Slot<LlamaRMSNorm>,
}

#[module_class]
impl LlamaDecoderLayer {
    /// Fresh parameters for layer `layer_idx`.
    pub fn new(config: &LlamaConfig, layer_idx: usize, init: &Init) -> Self {
        let norm = || LlamaRMSNorm::slot(config.hidden_size, config.rms_norm_eps, init);
        Self {
            self_attn: LlamaAttention::slot(config, layer_idx, init),
            mlp: LlamaMLP::slot(config, init),
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
