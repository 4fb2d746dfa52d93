use super::{Qwen3Attention, Qwen3Config, Qwen3DecoderLayer, Qwen3RMSNorm};
use crate::models::decoder_model;
use patching_core::prelude::*;

decoder_model! {
    /// Qwen3 without a head.
    Qwen3Model(Qwen3Config) -> BaseModelOutputWithPast;
    layers: Qwen3DecoderLayer,
    norm: Qwen3RMSNorm,
    /// Where Qwen3's positions become angles.
    rotary_emb: Qwen3RotaryEmbedding,
    recorded: {
        hidden_states = Qwen3DecoderLayer,
        attentions = Qwen3Attention,
    }
}
