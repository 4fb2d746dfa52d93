use super::{LlamaConfig, LlamaModel};
use crate::models::{causal_lm, sequence_classifier};
use burn::module::Module;
use burn::nn::Linear;
use patching_core::prelude::*;

/// Llama as a language model.
#[derive(Module, Debug)]
pub struct LlamaForCausalLM {
    /// The base model.
    pub model: LlamaModel,
    /// `[hidden, vocabulary]`; none where the config ties it to the embedding.
    pub lm_head: Option<Linear>,
}

/// Llama as a classifier of sequences.
#[derive(Module, Debug)]
pub struct LlamaForSequenceClassification {
    /// The base model.
    pub model: LlamaModel,
    /// `[hidden, labels]`
    pub score: Linear,
}

causal_lm!(LlamaForCausalLM, LlamaModel, LlamaConfig);
sequence_classifier!(LlamaForSequenceClassification, LlamaModel, LlamaConfig);
