use super::{ViTAttention, ViTConfig, ViTMLP};
use crate::layers::{LayerContext, layer_norm, new_layer_norm};
use burn::module::Module;
use burn::nn::LayerNorm;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// One of ViT's layers: attention, then the feed-forward block, each on normed input and added to it.
#[derive(Module, Debug)]
pub struct ViTLayer {
    /// Attention.
    pub attention: Slot<ViTAttention>,
    /// Before attention.
    pub layernorm_before: LayerNorm,
    /// Before the feed-forward block.
    pub layernorm_after: LayerNorm,
    /// The feed-forward block.
    pub mlp: Slot<ViTMLP>,
}

#[module_class]
impl ViTLayer {
    /// Fresh parameters for layer `layer_idx`.
    pub fn new(config: &ViTConfig, layer_idx: usize, init: &Init) -> Self {
        let norm = || new_layer_norm(config.hidden_size, config.layer_norm_eps, init.device());
        Self {
            attention: ViTAttention::slot(config, layer_idx, init),
            layernorm_before: norm(),
            layernorm_after: norm(),
            mlp: ViTMLP::slot(config, init),
        }
    }

    /// `[batch, seq, hidden]` to the same.
    pub fn forward(&self, hidden_states: Tensor<3>, context: &mut LayerContext) -> Tensor<3> {
        let normed = layer_norm(&self.layernorm_before, hidden_states.clone());
        let (attended, _) = self.attention.forward(normed, context);
        let hidden_states = attended + hidden_states;
        let normed = layer_norm(&self.layernorm_after, hidden_states.clone());
        self.mlp.forward(normed) + hidden_states
    }
}
