use super::{Qwen3Attention, Qwen3Config, Qwen3MLP};
use crate::layers::{LayerContext, rms_norm_class};
use burn::module::Module;
use burn::tensor::Tensor;
use patching_core::prelude::*;

rms_norm_class!(
    /// Qwen3's norm.
    Qwen3RMSNorm
);

/// One of Qwen3's layers: attention, then the feed-forward block, each on normed input and added to it.
#[derive(Module, Debug)]
pub struct Qwen3DecoderLayer {
    /// Attention.
    pub self_attn: Slot<Qwen3Attention>,
    /// The feed-forward block.
    pub mlp: Slot<Qwen3MLP>,
    /// Before attention.
    pub input_layernorm: Slot<Qwen3RMSNorm>,
    /// Before the feed-forward block.
    pub post_attention_layernorm: Slot<Qwen3RMSNorm>,
}

#[module_class]
impl Qwen3DecoderLayer {
    /// Fresh parameters for layer `layer_idx`.
    pub fn new(config: &Qwen3Config, layer_idx: usize, init: &Init) -> Self {
        let norm = || Qwen3RMSNorm::slot(config.hidden_size, config.rms_norm_eps, init);
        Self {
            self_attn: Qwen3Attention::slot(config, layer_idx, init),
            mlp: Qwen3MLP::slot(config, init),
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
