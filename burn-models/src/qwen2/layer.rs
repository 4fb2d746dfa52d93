use super::{Qwen2Attention, Qwen2Config, Qwen2MLP};
use crate::layers::{LayerContext, rms_norm_class};
use burn::module::Module;
use burn::tensor::Tensor;
use patching_core::prelude::*;

rms_norm_class!(
    /// Qwen2's norm.
    Qwen2RMSNorm
);

/// One of Qwen2's layers: attention, then the feed-forward block, each on normed input and added to it.
#[derive(Module, Debug)]
pub struct Qwen2DecoderLayer {
    /// Attention.
    pub self_attn: Slot<Qwen2Attention>,
    /// The feed-forward block.
    pub mlp: Slot<Qwen2MLP>,
    /// Before attention.
    pub input_layernorm: Slot<Qwen2RMSNorm>,
    /// Before the feed-forward block.
    pub post_attention_layernorm: Slot<Qwen2RMSNorm>,
}

#[module_class]
impl Qwen2DecoderLayer {
    /// Fresh parameters for layer `layer_idx`.
    pub fn new(config: &Qwen2Config, layer_idx: usize, init: &Init) -> Self {
        let norm = || Qwen2RMSNorm::slot(config.hidden_size, config.rms_norm_eps, init);
        Self {
            self_attn: Qwen2Attention::slot(config, layer_idx, init),
            mlp: Qwen2MLP::slot(config, init),
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
