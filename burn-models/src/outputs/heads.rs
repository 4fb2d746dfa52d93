use crate::layers::Cache;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// What a language model gives that may look at what an encoder gave.
#[derive(Clone, Debug, ModelOutput)]
pub struct CausalLMOutputWithCrossAttentions {
    /// The loss, `[1]`, if labels were given.
    pub loss: Option<Tensor<1>>,
    /// The scores of the next token, `[batch, positions kept, vocabulary]`.
    pub logits: Tensor<3>,
    /// What the model has seen, if that was to be kept.
    pub cache: Option<Cache>,
    /// The input of the first layer and the output of each, `[batch, seq, hidden]`.
    pub hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer, `[batch, heads, query, key]`.
    pub attentions: Captured<Tensor<4>>,
    /// The weights of each layer's attention to what an encoder gave, `[batch, heads, query, source]`.
    pub cross_attentions: Captured<Tensor<4>>,
}

/// What a model gives that fills in hidden tokens.
#[derive(Clone, Debug, ModelOutput)]
pub struct MaskedLMOutput {
    /// The loss, `[1]`, if labels were given.
    pub loss: Option<Tensor<1>>,
    /// The scores of the token at each position, `[batch, seq, vocabulary]`.
    pub logits: Tensor<3>,
    /// The input of the first layer and the output of each, `[batch, seq, hidden]`.
    pub hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer, `[batch, heads, query, key]`.
    pub attentions: Captured<Tensor<4>>,
}

/// What BERT gives as it is pretrained.
#[derive(Clone, Debug, ModelOutput)]
pub struct BertForPreTrainingOutput {
    /// The sum of both losses, `[1]`, if labels were given.
    pub loss: Option<Tensor<1>>,
    /// The scores of the token at each position, `[batch, seq, vocabulary]`.
    pub prediction_logits: Tensor<3>,
    /// The scores of whether a text follows another, `[batch, 2]`: that it does, and that it does not.
    pub seq_relationship_logits: Tensor<2>,
    /// The input of the first layer and the output of each, `[batch, seq, hidden]`.
    pub hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer, `[batch, heads, query, key]`.
    pub attentions: Captured<Tensor<4>>,
}

/// What a classifier of sequences gives whose model keeps nothing.
#[derive(Clone, Debug, ModelOutput)]
pub struct SequenceClassifierOutput {
    /// The loss, `[1]`, if labels were given.
    pub loss: Option<Tensor<1>>,
    /// The scores of the labels, `[batch, labels]`.
    pub logits: Tensor<2>,
    /// The input of the first layer and the output of each, `[batch, seq, hidden]`.
    pub hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer, `[batch, heads, query, key]`.
    pub attentions: Captured<Tensor<4>>,
}

/// What a classifier of tokens gives.
#[derive(Clone, Debug, ModelOutput)]
pub struct TokenClassifierOutput {
    /// The loss, `[1]`, if labels were given.
    pub loss: Option<Tensor<1>>,
    /// The scores of the labels of each token, `[batch, seq, labels]`.
    pub logits: Tensor<3>,
    /// The input of the first layer and the output of each, `[batch, seq, hidden]`.
    pub hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer, `[batch, heads, query, key]`.
    pub attentions: Captured<Tensor<4>>,
}

/// What a model gives that marks the answer to a question in a text.
#[derive(Clone, Debug, ModelOutput)]
pub struct QuestionAnsweringModelOutput {
    /// The loss, `[1]`, if labels were given.
    pub loss: Option<Tensor<1>>,
    /// How likely the answer begins at each token, `[batch, seq]`.
    pub start_logits: Tensor<2>,
    /// How likely it ends there, `[batch, seq]`.
    pub end_logits: Tensor<2>,
    /// The input of the first layer and the output of each, `[batch, seq, hidden]`.
    pub hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer, `[batch, heads, query, key]`.
    pub attentions: Captured<Tensor<4>>,
}

/// What a classifier of images gives.
#[derive(Clone, Debug, ModelOutput)]
pub struct ImageClassifierOutput {
    /// The loss, `[1]`, if labels were given.
    pub loss: Option<Tensor<1>>,
    /// The scores of the labels, `[batch, labels]`.
    pub logits: Tensor<2>,
    /// The input of the first layer and the output of each, `[batch, seq, hidden]`.
    pub hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer, `[batch, heads, query, key]`.
    pub attentions: Captured<Tensor<4>>,
}
