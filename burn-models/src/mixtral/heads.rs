use super::{MixtralConfig, MixtralModel};
use crate::models::{causal_lm, sequence_classifier};
use burn::module::Module;
use burn::nn::Linear;
use patching_core::prelude::*;

/// Mixtral as a language model.
#[derive(Module, Debug)]
pub struct MixtralForCausalLM {
    /// The base model.
    pub model: MixtralModel,
    /// `[hidden, vocabulary]`; none where the config ties it to the embedding.
    pub lm_head: Option<Linear>,
}

/// Mixtral as a classifier of sequences.
#[derive(Module, Debug)]
pub struct MixtralForSequenceClassification {
    /// The base model.
    pub model: MixtralModel,
    /// `[hidden, labels]`
    pub score: Linear,
}

causal_lm!(MixtralForCausalLM, MixtralModel, MixtralConfig, experts);
sequence_classifier!(MixtralForSequenceClassification, MixtralModel, MixtralConfig, experts);
