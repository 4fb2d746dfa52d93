use super::{Qwen2MoeAttention, Qwen2MoeConfig, Qwen2MoeDecoderLayer, Qwen2MoeRMSNorm, Qwen2MoeTopKRouter};
use crate::models::decoder_model;
use patching_core::prelude::*;

decoder_model! {
    /// Qwen2-MoE without a head.
    Qwen2MoeModel(Qwen2MoeConfig) -> MoeModelOutputWithPast;
    layers: Qwen2MoeDecoderLayer,
    norm: Qwen2MoeRMSNorm,
    /// Where Qwen2-MoE's positions become angles.
    rotary_emb: Qwen2MoeRotaryEmbedding,
    recorded: {
        router_logits = OutputRecorder(Qwen2MoeTopKRouter, index = 0),
        router_scores = OutputRecorder(Qwen2MoeTopKRouter, index = 1),
        router_indices = OutputRecorder(Qwen2MoeTopKRouter, index = 2),
        hidden_states = Qwen2MoeDecoderLayer,
        attentions = Qwen2MoeAttention,
    }
}
