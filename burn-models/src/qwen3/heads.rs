use super::{Qwen3Config, Qwen3Model};
use crate::models::{causal_lm, sequence_classifier};
use burn::module::Module;
use burn::nn::Linear;
use patching_core::prelude::*;

/// Qwen3 as a language model.
#[derive(Module, Debug)]
pub struct Qwen3ForCausalLM {
    /// The base model.
    pub model: Qwen3Model,
    /// `[hidden, vocabulary]`; none where the config ties it to the embedding.
    pub lm_head: Option<Linear>,
}

/// Qwen3 as a classifier of sequences.
#[derive(Module, Debug)]
pub struct Qwen3ForSequenceClassification {
    /// The base model.
    pub model: Qwen3Model,
    /// `[hidden, labels]`
    pub score: Linear,
}

causal_lm!(Qwen3ForCausalLM, Qwen3Model, Qwen3Config);
sequence_classifier!(Qwen3ForSequenceClassification, Qwen3Model, Qwen3Config);
