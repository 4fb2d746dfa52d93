use super::{Qwen2MoeAttention, Qwen2MoeConfig, Qwen2MoeFeedForward};
use crate::layers::{LayerContext, rms_norm_class};
use burn::module::Module;
use burn::tensor::Tensor;
use patching_core::prelude::*;

rms_norm_class!(
    /// Qwen2-MoE's norm.
    Qwen2MoeRMSNorm
);

/// One of Qwen2-MoE's layers: attention, then the feed-forward block, each on normed input and added to it.
#[derive(Module, Debug)]
pub struct Qwen2MoeDecoderLayer {
    /// Attention.
    pub self_attn: Slot<Qwen2MoeAttention>,
    /// The feed-forward block, with experts or without.
    pub mlp: Qwen2MoeFeedForward,
    /// Before attention.
    pub input_layernorm: Slot<Qwen2MoeRMSNorm>,
    /// Before the feed-forward block.
    pub post_attention_layernorm: Slot<Qwen2MoeRMSNorm>,
}

#[module_class]
impl Qwen2MoeDecoderLayer {
    /// Fresh parameters for layer `layer_idx`.
    pub fn new(config: &Qwen2MoeConfig, layer_idx: usize, init: &Init) -> Self {
        let norm = || Qwen2MoeRMSNorm::slot(config.hidden_size, config.rms_norm_eps, init);
        Self {
            self_attn: Qwen2MoeAttention::slot(config, layer_idx, init),
            mlp: Qwen2MoeFeedForward::new(config, layer_idx, init),
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
        hidden_states + self.mlp.forward(normed, context)
    }
}
