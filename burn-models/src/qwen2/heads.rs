use super::{Qwen2Config, Qwen2Model};
use crate::models::{causal_lm, sequence_classifier};
use burn::module::Module;
use burn::nn::Linear;
use patching_core::prelude::*;

/// Qwen2 as a language model.
#[derive(Module, Debug)]
pub struct Qwen2ForCausalLM {
    /// The base model.
    pub model: Qwen2Model,
    /// `[hidden, vocabulary]`; none where the config ties it to the embedding.
    pub lm_head: Option<Linear>,
}

/// Qwen2 as a classifier of sequences.
#[derive(Module, Debug)]
pub struct Qwen2ForSequenceClassification {
    /// The base model.
    pub model: Qwen2Model,
    /// `[hidden, labels]`
    pub score: Linear,
}

causal_lm!(Qwen2ForCausalLM, Qwen2Model, Qwen2Config);
sequence_classifier!(Qwen2ForSequenceClassification, Qwen2Model, Qwen2Config);
