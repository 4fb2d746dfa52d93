use crate::layers::Cache;
use burn::tensor::Tensor;
use patching_core::capture::OutputValue;
use patching_core::prelude::*;

#[diagnostic::do_not_recommend]
impl OutputField for Cache {
    fn output_value(&self) -> Option<OutputValue> {
        Some(OutputValue::Opaque("Cache"))
    }
}

/// What a decoder without a head gives.
#[derive(Clone, Debug, ModelOutput)]
pub struct BaseModelOutputWithPast {
    /// The hidden states after the final norm, `[batch, seq, hidden]`.
    pub last_hidden_state: Tensor<3>,
    /// What the model has seen, if that was to be kept.
    pub cache: Option<Cache>,
    /// The input of the first layer and the output of each, `[batch, seq, hidden]`.
    pub hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer, `[batch, heads, query, key]`.
    pub attentions: Captured<Tensor<4>>,
}

/// What a language model gives.
#[derive(Clone, Debug, ModelOutput)]
pub struct CausalLMOutputWithPast {
    /// The mean cross entropy of the next tokens, `[1]`, if labels were given.
    pub loss: Option<Tensor<1>>,
    /// The scores of the next token, `[batch, positions kept, vocabulary]`.
    pub logits: Tensor<3>,
    /// What the model has seen, if that was to be kept.
    pub cache: Option<Cache>,
    /// The input of the first layer and the output of each, `[batch, seq, hidden]`.
    pub hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer, `[batch, heads, query, key]`.
    pub attentions: Captured<Tensor<4>>,
}

/// What a classifier of sequences gives.
#[derive(Clone, Debug, ModelOutput)]
pub struct SequenceClassifierOutputWithPast {
    /// The loss, `[1]`, if labels were given.
    pub loss: Option<Tensor<1>>,
    /// The scores of the labels, `[batch, labels]`.
    pub logits: Tensor<2>,
    /// What the model has seen, if that was to be kept.
    pub cache: Option<Cache>,
    /// The input of the first layer and the output of each, `[batch, seq, hidden]`.
    pub hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer, `[batch, heads, query, key]`.
    pub attentions: Captured<Tensor<4>>,
}
