use super::{CausalLMOutputWithCrossAttentions, Seq2SeqLMOutput};
use crate::layers::Cache;
use burn::tensor::{Int, Tensor};
use patching_core::capture::OutputTuple;
use patching_core::prelude::*;

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

/// What a decoder with mixtures of experts gives without a head.
#[derive(Clone, Debug, ModelOutput)]
pub struct MoeModelOutputWithPast {
    /// The hidden states after the final norm, `[batch, seq, hidden]`.
    pub last_hidden_state: Tensor<3>,
    /// What the model has seen, if that was to be kept.
    pub cache: Option<Cache>,
    /// The input of the first layer and the output of each, `[batch, seq, hidden]`.
    pub hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer, `[batch, heads, query, key]`.
    pub attentions: Captured<Tensor<4>>,
    /// The raw logits of each router, `[batch * seq, experts]`; only layers that have experts count.
    pub router_logits: Captured<Tensor<2>>,
    /// How much each chosen expert counts, `[batch * seq, top k]`, as `router_logits`.
    pub router_scores: Captured<Tensor<2>>,
    /// The experts chosen, `[batch * seq, top k]`, as `router_logits`.
    pub router_indices: Captured<Tensor<2, Int>>,
}

/// What a language model with mixtures of experts gives.
#[derive(Clone, Debug, ModelOutput)]
pub struct MoeCausalLMOutputWithPast {
    /// The mean cross entropy of the next tokens, `[1]`, if labels were given; with `aux_loss`, where there is one,
    /// times the config's `router_aux_loss_coef`.
    pub loss: Option<Tensor<1>>,
    /// How unevenly the experts are used, `[1]`, if the router logits of all layers were recorded. It is computed from
    /// what was recorded, so it has a gradient unless that is detached.
    pub aux_loss: Option<Tensor<1>>,
    /// The scores of the next token, `[batch, positions kept, vocabulary]`.
    pub logits: Tensor<3>,
    /// What the model has seen, if that was to be kept.
    pub cache: Option<Cache>,
    /// The input of the first layer and the output of each, `[batch, seq, hidden]`.
    pub hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer, `[batch, heads, query, key]`.
    pub attentions: Captured<Tensor<4>>,
    /// The raw logits of each router, `[batch * seq, experts]`; only layers that have experts count.
    pub router_logits: Captured<Tensor<2>>,
    /// How much each chosen expert counts, `[batch * seq, top k]`, as `router_logits`.
    pub router_scores: Captured<Tensor<2>>,
    /// The experts chosen, `[batch * seq, top k]`, as `router_logits`.
    pub router_indices: Captured<Tensor<2, Int>>,
}

/// What a classifier of sequences with mixtures of experts gives.
#[derive(Clone, Debug, ModelOutput)]
pub struct MoeSequenceClassifierOutputWithPast {
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
    /// The raw logits of each router, `[batch * seq, experts]`; only layers that have experts count.
    pub router_logits: Captured<Tensor<2>>,
    /// How much each chosen expert counts, `[batch * seq, top k]`, as `router_logits`.
    pub router_scores: Captured<Tensor<2>>,
    /// The experts chosen, `[batch * seq, top k]`, as `router_logits`.
    pub router_indices: Captured<Tensor<2, Int>>,
}

/// What every language model gives, whatever else it gives.
pub trait LanguageModelOutput: Clone + std::fmt::Debug {
    /// The scores of the next token, `[batch, positions kept, vocabulary]`.
    fn logits(&self) -> &Tensor<3>;

    /// The loss, `[1]`, if labels were given.
    fn loss(&self) -> Option<&Tensor<1>>;

    /// The input of the first layer and the output of each, `[batch, seq, hidden]`.
    fn hidden_states(&self) -> &Captured<Tensor<3>>;

    /// The attention weights of each layer, `[batch, heads, query, key]`.
    fn attentions(&self) -> &Captured<Tensor<4>>;

    /// Takes what the model has seen, if that was to be kept.
    fn take_cache(&mut self) -> Option<Cache>;

    /// The fields that are present, in the reference's order.
    fn as_tuple(&self) -> OutputTuple;
}

macro_rules! language_model_output {
    ($($output:ty, $hidden_states:ident, $attentions:ident;)*) => { $(
        impl $crate::LanguageModelOutput for $output {
            fn logits(&self) -> &burn::tensor::Tensor<3> {
                &self.logits
            }

            fn loss(&self) -> Option<&burn::tensor::Tensor<1>> {
                self.loss.as_ref()
            }

            fn hidden_states(&self) -> &Captured<burn::tensor::Tensor<3>> {
                &self.$hidden_states
            }

            fn attentions(&self) -> &Captured<burn::tensor::Tensor<4>> {
                &self.$attentions
            }

            fn take_cache(&mut self) -> Option<$crate::layers::Cache> {
                self.cache.take()
            }

            fn as_tuple(&self) -> patching_core::capture::OutputTuple {
                patching_core::capture::ModelOutput::to_tuple(self)
            }
        }
    )* };
}
pub(crate) use language_model_output;
language_model_output!(
    CausalLMOutputWithPast, hidden_states, attentions;
    CausalLMOutputWithCrossAttentions, hidden_states, attentions;
    MoeCausalLMOutputWithPast, hidden_states, attentions;
    Seq2SeqLMOutput, decoder_hidden_states, decoder_attentions;
);
