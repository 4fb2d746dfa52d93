use super::{WhisperAttention, WhisperConfig};
use crate::layers::{Activation, LayerContext, layer_norm, new_layer_norm, new_linear, plain_mlp, well_finite};
use burn::module::Module;
use burn::nn::{LayerNorm, Linear};
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// What the norms add to the variance.
pub(super) const EPSILON: f64 = 1e-5;

/// One of the encoder's layers: attention, then the feed-forward block, each on normed input and added to it.
#[derive(Module, Debug)]
pub struct WhisperEncoderLayer {
    /// Attention.
    pub self_attn: Slot<WhisperAttention>,
    /// Before attention.
    pub self_attn_layer_norm: LayerNorm,
    /// `[hidden, intermediate]`
    pub fc1: Linear,
    /// `[intermediate, hidden]`
    pub fc2: Linear,
    /// Before the feed-forward block.
    pub final_layer_norm: LayerNorm,
    #[module(skip)]
    activation: Activation,
}

#[module_class]
impl WhisperEncoderLayer {
    /// Fresh parameters for layer `layer_idx`.
    pub fn new(config: &WhisperConfig, layer_idx: usize, init: &Init) -> Self {
        let (size, inside, std) = (config.d_model, config.encoder_ffn_dim, config.init_std);
        let norm = || new_layer_norm(size, EPSILON, init.device());
        Self {
            self_attn: WhisperAttention::slot(config, config.encoder_attention_heads, layer_idx, false, init),
            self_attn_layer_norm: norm(),
            fc1: new_linear(size, inside, true, std, init.device()),
            fc2: new_linear(inside, size, true, std, init.device()),
            final_layer_norm: norm(),
            activation: config.activation_function,
        }
    }

    /// `[batch, seq, hidden]` to the same.
    pub fn forward(&self, hidden_states: Tensor<3>, context: &mut LayerContext) -> Tensor<3> {
        let normed = layer_norm(&self.self_attn_layer_norm, hidden_states.clone());
        let (attended, _) = self.self_attn.forward(normed, context);
        let hidden_states = hidden_states + attended;
        let normed = layer_norm(&self.final_layer_norm, hidden_states.clone());
        well_finite(hidden_states + plain_mlp(&self.fc1, &self.fc2, self.activation, normed))
    }
}

/// One of the decoder's layers: attention, attention to what the encoder gave, then the feed-forward block, each on
/// normed input and added to it.
#[derive(Module, Debug)]
pub struct WhisperDecoderLayer {
    /// Attention.
    pub self_attn: Slot<WhisperAttention>,
    /// Before attention.
    pub self_attn_layer_norm: LayerNorm,
    /// Attention to what the encoder gave; left out where there is no encoder.
    pub encoder_attn: Slot<WhisperAttention>,
    /// Before that.
    pub encoder_attn_layer_norm: LayerNorm,
    /// `[hidden, intermediate]`
    pub fc1: Linear,
    /// `[intermediate, hidden]`
    pub fc2: Linear,
    /// Before the feed-forward block.
    pub final_layer_norm: LayerNorm,
    #[module(skip)]
    activation: Activation,
}

#[module_class]
impl WhisperDecoderLayer {
    /// Fresh parameters for layer `layer_idx`.
    pub fn new(config: &WhisperConfig, layer_idx: usize, init: &Init) -> Self {
        let (size, inside, std) = (config.d_model, config.decoder_ffn_dim, config.init_std);
        let norm = || new_layer_norm(size, EPSILON, init.device());
        let attention =
            |is_cross| WhisperAttention::slot(config, config.decoder_attention_heads, layer_idx, is_cross, init);
        Self {
            self_attn: attention(false),
            self_attn_layer_norm: norm(),
            encoder_attn: attention(true),
            encoder_attn_layer_norm: norm(),
            fc1: new_linear(size, inside, true, std, init.device()),
            fc2: new_linear(inside, size, true, std, init.device()),
            final_layer_norm: norm(),
            activation: config.activation_function,
        }
    }

    /// `[batch, seq, hidden]` to the same.
    pub fn forward(&self, hidden_states: Tensor<3>, context: &mut LayerContext) -> Tensor<3> {
        let normed = layer_norm(&self.self_attn_layer_norm, hidden_states.clone());
        let (attended, _) = self.self_attn.forward(normed, context);
        let mut hidden_states = hidden_states + attended;
        if context.has_encoder() {
            let normed = layer_norm(&self.encoder_attn_layer_norm, hidden_states.clone());
            let (attended, _) = self.encoder_attn.forward(normed, context);
            hidden_states = hidden_states + attended;
        }
        let normed = layer_norm(&self.final_layer_norm, hidden_states.clone());
        hidden_states + plain_mlp(&self.fc1, &self.fc2, self.activation, normed)
    }
}
