use super::{MixtralAttention, MixtralConfig, MixtralDecoderLayer, MixtralRMSNorm, MixtralTopKRouter};
use crate::models::decoder_model;
use patching_core::prelude::*;

decoder_model! {
    /// Mixtral without a head.
    MixtralModel(MixtralConfig) -> MoeModelOutputWithPast;
    layers: MixtralDecoderLayer,
    norm: MixtralRMSNorm,
    /// Where Mixtral's positions become angles.
    rotary_emb: MixtralRotaryEmbedding,
    recorded: {
        router_logits = OutputRecorder(MixtralTopKRouter, index = 0),
        router_scores = OutputRecorder(MixtralTopKRouter, index = 1),
        router_indices = OutputRecorder(MixtralTopKRouter, index = 2),
        hidden_states = MixtralDecoderLayer,
        attentions = MixtralAttention,
    }
}
