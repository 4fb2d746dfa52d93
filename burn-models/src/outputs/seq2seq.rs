use crate::layers::Cache;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// What an encoder and a decoder give without a head.
#[derive(Clone, Debug, ModelOutput)]
pub struct Seq2SeqModelOutput {
    /// The decoder's hidden states after the last layer and the final norm, if there is one, `[batch, seq, hidden]`.
    pub last_hidden_state: Tensor<3>,
    /// What the model has seen, if that was to be kept.
    pub cache: Option<Cache>,
    /// The input of the decoder's first layer and the output of each, `[batch, seq, hidden]`.
    pub decoder_hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer of the decoder, `[batch, heads, query, key]`.
    pub decoder_attentions: Captured<Tensor<4>>,
    /// The weights of each layer's attention to what an encoder gave, `[batch, heads, query, source]`.
    pub cross_attentions: Captured<Tensor<4>>,
    /// What the encoder gave, `[batch, source, hidden]`.
    pub encoder_last_hidden_state: Option<Tensor<3>>,
    /// The input of the encoder's first layer and the output of each, `[batch, source, hidden]`.
    pub encoder_hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer of the encoder, `[batch, heads, source, source]`.
    pub encoder_attentions: Captured<Tensor<4>>,
}

/// What an encoder and a decoder with a language model head give.
#[derive(Clone, Debug, ModelOutput)]
pub struct Seq2SeqLMOutput {
    /// The loss, `[1]`, if labels were given.
    pub loss: Option<Tensor<1>>,
    /// The scores of the next token, `[batch, seq, vocabulary]`.
    pub logits: Tensor<3>,
    /// What the model has seen, if that was to be kept.
    pub cache: Option<Cache>,
    /// The input of the decoder's first layer and the output of each, `[batch, seq, hidden]`.
    pub decoder_hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer of the decoder, `[batch, heads, query, key]`.
    pub decoder_attentions: Captured<Tensor<4>>,
    /// The weights of each layer's attention to what an encoder gave, `[batch, heads, query, source]`.
    pub cross_attentions: Captured<Tensor<4>>,
    /// What the encoder gave, `[batch, source, hidden]`.
    pub encoder_last_hidden_state: Option<Tensor<3>>,
    /// The input of the encoder's first layer and the output of each, `[batch, source, hidden]`.
    pub encoder_hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer of the encoder, `[batch, heads, source, source]`.
    pub encoder_attentions: Captured<Tensor<4>>,
}

/// What an encoder and a decoder give that classify sequences.
#[derive(Clone, Debug, ModelOutput)]
pub struct Seq2SeqSequenceClassifierOutput {
    /// The loss, `[1]`, if labels were given.
    pub loss: Option<Tensor<1>>,
    /// The scores of the labels, `[batch, labels]`.
    pub logits: Tensor<2>,
    /// What the model has seen, if that was to be kept.
    pub cache: Option<Cache>,
    /// The input of the decoder's first layer and the output of each, `[batch, seq, hidden]`.
    pub decoder_hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer of the decoder, `[batch, heads, query, key]`.
    pub decoder_attentions: Captured<Tensor<4>>,
    /// The weights of each layer's attention to what an encoder gave, `[batch, heads, query, source]`.
    pub cross_attentions: Captured<Tensor<4>>,
    /// What the encoder gave, `[batch, source, hidden]`.
    pub encoder_last_hidden_state: Option<Tensor<3>>,
    /// The input of the encoder's first layer and the output of each, `[batch, source, hidden]`.
    pub encoder_hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer of the encoder, `[batch, heads, source, source]`.
    pub encoder_attentions: Captured<Tensor<4>>,
}

/// What an encoder and a decoder give that mark the answer to a question in a text.
#[derive(Clone, Debug, ModelOutput)]
pub struct Seq2SeqQuestionAnsweringModelOutput {
    /// The loss, `[1]`, if labels were given.
    pub loss: Option<Tensor<1>>,
    /// How likely the answer begins at each token, `[batch, seq]`.
    pub start_logits: Tensor<2>,
    /// How likely it ends there, `[batch, seq]`.
    pub end_logits: Tensor<2>,
    /// What the model has seen, if that was to be kept.
    pub cache: Option<Cache>,
    /// The input of the decoder's first layer and the output of each, `[batch, seq, hidden]`.
    pub decoder_hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer of the decoder, `[batch, heads, query, key]`.
    pub decoder_attentions: Captured<Tensor<4>>,
    /// The weights of each layer's attention to what an encoder gave, `[batch, heads, query, source]`.
    pub cross_attentions: Captured<Tensor<4>>,
    /// What the encoder gave, `[batch, source, hidden]`.
    pub encoder_last_hidden_state: Option<Tensor<3>>,
    /// The input of the encoder's first layer and the output of each, `[batch, source, hidden]`.
    pub encoder_hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer of the encoder, `[batch, heads, source, source]`.
    pub encoder_attentions: Captured<Tensor<4>>,
}
