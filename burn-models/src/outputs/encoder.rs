use crate::config::GeneralConfig;
use crate::error::ForwardError;
use crate::layers::Cache;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// What an encoder gives.
#[derive(Clone, Debug, ModelOutput)]
pub struct BaseModelOutput {
    /// The hidden states after the last layer and the final norm, if there is one, `[batch, seq, hidden]`.
    pub last_hidden_state: Tensor<3>,
    /// The input of the first layer and the output of each, `[batch, seq, hidden]`.
    pub hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer, `[batch, heads, query, key]`.
    pub attentions: Captured<Tensor<4>>,
}

/// What an encoder with a pooler gives.
#[derive(Clone, Debug, ModelOutput)]
pub struct BaseModelOutputWithPooling {
    /// The hidden states after the last layer and the final norm, if there is one, `[batch, seq, hidden]`.
    pub last_hidden_state: Tensor<3>,
    /// What stands for a whole sequence, `[batch, hidden]`, if the model has a pooler.
    pub pooler_output: Option<Tensor<2>>,
    /// The input of the first layer and the output of each, `[batch, seq, hidden]`.
    pub hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer, `[batch, heads, query, key]`.
    pub attentions: Captured<Tensor<4>>,
}

impl BaseModelOutputWithPooling {
    /// What stands for a whole sequence, for a head that needs it.
    pub(crate) fn pooled(&self, general: &GeneralConfig) -> Result<Tensor<2>, ForwardError> {
        let because = ": the base model has no pooler";
        let absent = || ForwardError::Absent { model: general.model_type.clone(), name: "pooler_output", because };
        self.pooler_output.clone().ok_or_else(absent)
    }
}

/// What a stack of layers gives that may look at what an encoder gave.
#[derive(Clone, Debug, ModelOutput)]
pub struct BaseModelOutputWithPastAndCrossAttentions {
    /// The hidden states after the last layer and the final norm, if there is one, `[batch, seq, hidden]`.
    pub last_hidden_state: Tensor<3>,
    /// What the model has seen, if that was to be kept.
    pub cache: Option<Cache>,
    /// The input of the first layer and the output of each, `[batch, seq, hidden]`.
    pub hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer, `[batch, heads, query, key]`.
    pub attentions: Captured<Tensor<4>>,
    /// The weights of each layer's attention to what an encoder gave, `[batch, heads, query, source]`.
    pub cross_attentions: Captured<Tensor<4>>,
}

/// The same with a pooler.
#[derive(Clone, Debug, ModelOutput)]
pub struct BaseModelOutputWithPoolingAndCrossAttentions {
    /// The hidden states after the last layer and the final norm, if there is one, `[batch, seq, hidden]`.
    pub last_hidden_state: Tensor<3>,
    /// What stands for a whole sequence, `[batch, hidden]`, if the model has a pooler.
    pub pooler_output: Option<Tensor<2>>,
    /// The input of the first layer and the output of each, `[batch, seq, hidden]`.
    pub hidden_states: Captured<Tensor<3>>,
    /// What the model has seen, if that was to be kept.
    pub cache: Option<Cache>,
    /// The attention weights of each layer, `[batch, heads, query, key]`.
    pub attentions: Captured<Tensor<4>>,
    /// The weights of each layer's attention to what an encoder gave, `[batch, heads, query, source]`.
    pub cross_attentions: Captured<Tensor<4>>,
}

/// What every model gives that has one hidden state for each position.
pub trait HiddenStateOutput: ModelOutput {
    /// The hidden states after the last layer and the final norm, if there is one, `[batch, seq, hidden]`.
    fn last_hidden_state(&self) -> &Tensor<3>;
}

macro_rules! hidden_state_output {
    ($($output:ty),*) => { $(
        impl $crate::HiddenStateOutput for $output {
            fn last_hidden_state(&self) -> &burn::tensor::Tensor<3> {
                &self.last_hidden_state
            }
        }
    )* };
}
pub(crate) use hidden_state_output;
hidden_state_output!(
    super::BaseModelOutputWithPast,
    super::MoeModelOutputWithPast,
    BaseModelOutput,
    BaseModelOutputWithPooling,
    BaseModelOutputWithPastAndCrossAttentions,
    BaseModelOutputWithPoolingAndCrossAttentions
);
