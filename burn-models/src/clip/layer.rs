use super::{CLIPAttention, CLIPEncoderConfig, CLIPMLP};
use crate::layers::{LayerContext, layer_norm, new_layer_norm};
use burn::module::Module;
use burn::nn::LayerNorm;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// One of CLIP's layers: attention, then the feed-forward block, each on normed input and added to it.
#[derive(Module, Debug)]
pub struct CLIPEncoderLayer {
    /// Attention.
    pub self_attn: Slot<CLIPAttention>,
    /// Before attention.
    pub layer_norm1: LayerNorm,
    /// The feed-forward block.
    pub mlp: Slot<CLIPMLP>,
    /// Before the feed-forward block.
    pub layer_norm2: LayerNorm,
}

#[module_class]
impl CLIPEncoderLayer {
    /// Fresh parameters for layer `layer_idx`.
    pub fn new(config: &CLIPEncoderConfig, layer_idx: usize, init: &Init) -> Self {
        let norm = || new_layer_norm(config.hidden_size, config.layer_norm_eps, init.device());
        Self {
            self_attn: CLIPAttention::slot(config, layer_idx, init),
            layer_norm1: norm(),
            mlp: CLIPMLP::slot(config, init),
            layer_norm2: norm(),
        }
    }

    /// `[batch, seq, hidden]` to the same.
    pub fn forward(&self, hidden_states: Tensor<3>, context: &mut LayerContext) -> Tensor<3> {
        let normed = layer_norm(&self.layer_norm1, hidden_states.clone());
        let (attended, _) = self.self_attn.forward(normed, context);
        let hidden_states = hidden_states + attended;
        let normed = layer_norm(&self.layer_norm2, hidden_states.clone());
        hidden_states + self.mlp.forward(normed)
    }
}

/// The layers of a tower, one after the other; the tower's own `forward` goes through them, so that it can stop early.
#[derive(Module, Debug)]
pub struct CLIPEncoder {
    /// The layers.
    pub layers: Vec<Slot<CLIPEncoderLayer>>,
}

impl CLIPEncoder {
    /// Fresh parameters.
    pub fn new(config: &CLIPEncoderConfig, init: &Init) -> Self {
        let layer = |layer_idx| CLIPEncoderLayer::slot(config, layer_idx, init);
        Self { layers: (0..config.num_hidden_layers).map(layer).collect() }
    }
}
