use super::{GPT2Attention, GPT2Config, GPT2MLP};
use crate::layers::{LayerContext, layer_norm, new_layer_norm};
use burn::module::Module;
use burn::nn::LayerNorm;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// One of GPT-2's layers: attention, in some models attention to an encoder, and the feed-forward block, each on normed
/// input and added to it.
#[derive(Module, Debug)]
pub struct GPT2Block {
    /// Before attention.
    pub ln_1: LayerNorm,
    /// Attention.
    pub attn: Slot<GPT2Attention>,
    /// Before the feed-forward block.
    pub ln_2: LayerNorm,
    /// Attention to what an encoder gave, where the config says so.
    pub crossattention: Option<Slot<GPT2Attention>>,
    /// Before that.
    pub ln_cross_attn: Option<LayerNorm>,
    /// The feed-forward block.
    pub mlp: Slot<GPT2MLP>,
}

#[module_class]
impl GPT2Block {
    /// Fresh parameters for layer `layer_idx`.
    pub fn new(config: &GPT2Config, layer_idx: usize, init: &Init) -> Self {
        let norm = || new_layer_norm(config.n_embd, config.layer_norm_epsilon, init.device());
        let attention = |is_cross_attention| GPT2Attention::slot(config, layer_idx, is_cross_attention, init);
        Self {
            ln_1: norm(),
            attn: attention(false),
            ln_2: norm(),
            crossattention: config.add_cross_attention.then(|| attention(true)),
            ln_cross_attn: config.add_cross_attention.then(norm),
            mlp: GPT2MLP::slot(config.intermediate_size(), config, init),
        }
    }

    /// `[batch, seq, hidden]` to the same.
    pub fn forward(&self, hidden_states: Tensor<3>, context: &mut LayerContext) -> Tensor<3> {
        let (attended, _) = self.attn.forward(layer_norm(&self.ln_1, hidden_states.clone()), context);
        let mut hidden_states = attended + hidden_states;
        if let (Some(crossattention), Some(norm)) = (&self.crossattention, &self.ln_cross_attn)
            && context.has_encoder()
        {
            let (attended, _) = crossattention.forward(layer_norm(norm, hidden_states.clone()), context);
            hidden_states = hidden_states + attended;
        }
        let normed = layer_norm(&self.ln_2, hidden_states.clone());
        hidden_states + self.mlp.forward(normed)
    }
}
