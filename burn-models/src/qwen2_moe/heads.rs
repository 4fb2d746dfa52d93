use super::{Qwen2MoeConfig, Qwen2MoeModel};
use crate::models::{causal_lm, sequence_classifier};
use burn::module::Module;
use burn::nn::Linear;
use patching_core::prelude::*;

/// Qwen2-MoE as a language model.
#[derive(Module, Debug)]
pub struct Qwen2MoeForCausalLM {
    /// The base model.
    pub model: Qwen2MoeModel,
    /// `[hidden, vocabulary]`; none where the config ties it to the embedding.
    pub lm_head: Option<Linear>,
}

/// Qwen2-MoE as a classifier of sequences.
#[derive(Module, Debug)]
pub struct Qwen2MoeForSequenceClassification {
    /// The base model.
    pub model: Qwen2MoeModel,
    /// `[hidden, labels]`
    pub score: Linear,
}

causal_lm!(Qwen2MoeForCausalLM, Qwen2MoeModel, Qwen2MoeConfig, experts);
sequence_classifier!(Qwen2MoeForSequenceClassification, Qwen2MoeModel, Qwen2MoeConfig, experts);
