//! Heads of text models that families have alike but for their names.

use super::Tower;
use crate::error::ForwardError;
use crate::inputs::{Labels, LogitsToKeep, TextInputs};
use crate::layers::{Cache, linear, select_positions, span_logits, span_loss, token_loss};
use crate::outputs::{
    CausalLMOutputWithCrossAttentions, HiddenStateOutput, QuestionAnsweringModelOutput, TokenClassifierOutput,
};
use burn::nn::Linear;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// Runs a base model and scores each token, `[batch, seq, labels]`.
pub(crate) fn classify_tokens<M: Tower<Inputs = TextInputs, Output: HiddenStateOutput>>(
    model: &M,
    classifier: &Linear,
    mut inputs: TextInputs,
    kwargs: &ForwardKwargs,
) -> Result<TokenClassifierOutput, ForwardError> {
    let labels = inputs.labels.take();
    let mut base = model.run_tower(inputs, kwargs)?;
    let logits = linear(classifier, base.last_hidden_state().clone());
    let mut output = TokenClassifierOutput::new(logits.clone());
    output.loss = labels.map(|labels| token_loss(logits, labels)).transpose()?;
    base.pass_on(&mut output)?;
    Ok(output)
}

/// Runs a base model and scores each token as the first and as the last of an answer, `[batch, seq]` both.
pub(crate) fn mark_answers<M: Tower<Inputs = TextInputs, Output: HiddenStateOutput>>(
    model: &M,
    scores: &Linear,
    mut inputs: TextInputs,
    kwargs: &ForwardKwargs,
) -> Result<QuestionAnsweringModelOutput, ForwardError> {
    let labels = inputs.labels.take();
    let mut base = model.run_tower(inputs, kwargs)?;
    let [start, end] = span_logits(scores, base.last_hidden_state().clone())?;
    let mut output = QuestionAnsweringModelOutput::new(start.clone(), end.clone());
    output.loss = labels.map(|labels| span_loss(start, end, labels)).transpose()?;
    base.pass_on(&mut output)?;
    Ok(output)
}

/// What a language model head that may look at an encoder makes of what its base model gave.
pub(crate) struct NextTokens<B> {
    /// What the base model gave.
    pub(crate) base: B,
    /// What it has seen, out of that.
    pub(crate) cache: Option<Cache>,
    /// The positions to score.
    pub(crate) logits_to_keep: LogitsToKeep,
    /// The expected tokens.
    pub(crate) labels: Option<Labels>,
    /// How they are compared with the logits.
    pub(crate) loss: fn(Tensor<3>, Labels) -> Result<Tensor<1>, ForwardError>,
}

impl<B: HiddenStateOutput> NextTokens<B> {
    /// Scores tokens by `logits`, `[batch, positions kept, hidden]` to `[batch, positions kept, vocabulary]`.
    pub(crate) fn scored(
        mut self,
        logits: impl FnOnce(Tensor<3>) -> Tensor<3>,
    ) -> Result<CausalLMOutputWithCrossAttentions, ForwardError> {
        let logits = logits(select_positions(self.base.last_hidden_state().clone(), self.logits_to_keep)?);
        let mut output = CausalLMOutputWithCrossAttentions::new(logits.clone());
        output.loss = self.labels.map(|labels| (self.loss)(logits, labels)).transpose()?;
        output.cache = self.cache;
        self.base.pass_on(&mut output)?;
        Ok(output)
    }
}
