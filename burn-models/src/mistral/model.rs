use super::{MistralAttention, MistralConfig, MistralDecoderLayer, MistralRMSNorm};
use crate::models::decoder_model;
use patching_core::prelude::*;

decoder_model! {
    /// Mistral without a head.
    MistralModel(MistralConfig) -> BaseModelOutputWithPast;
    layers: MistralDecoderLayer,
    norm: MistralRMSNorm,
    /// Where Mistral's positions become angles.
    rotary_emb: MistralRotaryEmbedding,
    recorded: {
        hidden_states = MistralDecoderLayer,
        attentions = MistralAttention,
    }
}
