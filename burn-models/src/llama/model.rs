use super::{LlamaAttention, LlamaConfig, LlamaDecoderLayer, LlamaRMSNorm};
use crate::models::decoder_model;
use patching_core::prelude::*;

decoder_model! {
    /// Llama without a head.
    LlamaModel(LlamaConfig) -> BaseModelOutputWithPast;
    layers: LlamaDecoderLayer,
    norm: LlamaRMSNorm,
    /// Where Llama's positions become angles.
    rotary_emb: LlamaRotaryEmbedding,
    recorded: {
        hidden_states = LlamaDecoderLayer,
        attentions = LlamaAttention,
    }
}
