use super::{MixtralAttention, MixtralConfig, MixtralSparseMoeBlock};
use crate::layers::{LayerContext, rms_norm_class};
use burn::module::Module;
use burn::tensor::Tensor;
use patching_core::prelude::*;

rms_norm_class!(
    /// Mixtral's norm.
    MixtralRMSNorm
);

/// One of Mixtral's layers: attention, then the feed-forward block, each on normed input and added to it.
#[derive(Module, Debug)]
pub struct MixtralDecoderLayer {
    /// Attention.
    pub self_attn: Slot<MixtralAttention>,
    /// The feed-forward block.
    pub mlp: Slot<MixtralSparseMoeBlock>,
    /// Before attention.
    pub input_layernorm: Slot<MixtralRMSNorm>,
    /// Before the feed-forward block.
    pub post_attention_layernorm: Slot<MixtralRMSNorm>,
}

#[module_class]
impl MixtralDecoderLayer {
    /// Fresh parameters for layer `layer_idx`.
    pub fn new(config: &MixtralConfig, layer_idx: usize, init: &Init) -> Self {
        let norm = || MixtralRMSNorm::slot(config.hidden_size, config.rms_norm_eps, init);
        Self {
            self_attn: MixtralAttention::slot(config, layer_idx, init),
            mlp: MixtralSparseMoeBlock::slot(config, layer_idx, init),
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
