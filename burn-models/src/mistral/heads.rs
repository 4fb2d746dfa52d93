use super::{MistralConfig, MistralModel};
use crate::models::{causal_lm, sequence_classifier};
use burn::module::Module;
use burn::nn::Linear;
use patching_core::prelude::*;

/// Mistral as a language model.
#[derive(Module, Debug)]
pub struct MistralForCausalLM {
    /// The base model.
    pub model: MistralModel,
    /// `[hidden, vocabulary]`; none where the config ties it to the embedding.
    pub lm_head: Option<Linear>,
}

/// Mistral as a classifier of sequences.
#[derive(Module, Debug)]
pub struct MistralForSequenceClassification {
    /// The base model.
    pub model: MistralModel,
    /// `[hidden, labels]`
    pub score: Linear,
}

causal_lm!(MistralForCausalLM, MistralModel, MistralConfig);
sequence_classifier!(MistralForSequenceClassification, MistralModel, MistralConfig);
