use super::{Qwen2Attention, Qwen2Config, Qwen2DecoderLayer, Qwen2RMSNorm};
use crate::models::decoder_model;
use patching_core::prelude::*;

decoder_model! {
    /// Qwen2 without a head.
    Qwen2Model(Qwen2Config) -> BaseModelOutputWithPast;
    layers: Qwen2DecoderLayer,
    norm: Qwen2RMSNorm,
    /// Where Qwen2's positions become angles.
    rotary_emb: Qwen2RotaryEmbedding,
    recorded: {
        hidden_states = Qwen2DecoderLayer,
        attentions = Qwen2Attention,
    }
}
