use crate::outputs::{CausalLMOutputWithPast, LanguageModelOutput};
use burn::tensor::{Int, Tensor};
use patching_core::capture::OutputTuple;

/// What `generate` gives.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GenerateOutput<O = CausalLMOutputWithPast> {
    /// The prompts with what was added, `[batch, tokens]`; finished sequences end in padding.
    pub sequences: Tensor<2, Int>,
    /// How many tokens of each sequence are its prompt, padding included.
    pub prompt_length: usize,
    /// What was added to each sequence, up to and including the token that ended it.
    pub new_tokens: Vec<Vec<i64>>,
    /// The output of each step, without its cache; empty unless something was asked for.
    ///
    /// The logits are those of the last position, `[batch, 1, vocabulary]`. With a cache, what is recorded at the
    /// first step covers the prompt, and the one new token at every other.
    pub steps: Vec<O>,
}

/// What a callback is told after each step.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Step<'a, O = CausalLMOutputWithPast> {
    /// The step, counted from 0.
    pub index: usize,
    /// The token chosen for each sequence; padding where it had ended before.
    pub tokens: &'a [i64],
    /// Which sequences have ended.
    pub finished: &'a [bool],
    /// The output that the tokens were chosen by, without its cache.
    pub output: &'a O,
}

/// A [`GenerateOutput`] with the type of its outputs erased, for code that treats every model alike.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AnyGenerateOutput {
    /// See [`GenerateOutput::sequences`].
    pub sequences: Tensor<2, Int>,
    /// See [`GenerateOutput::prompt_length`].
    pub prompt_length: usize,
    /// See [`GenerateOutput::new_tokens`].
    pub new_tokens: Vec<Vec<i64>>,
    /// What was present in the output of each step; see [`GenerateOutput::steps`].
    pub steps: Vec<OutputTuple>,
}

impl<O: LanguageModelOutput> From<GenerateOutput<O>> for AnyGenerateOutput {
    fn from(output: GenerateOutput<O>) -> Self {
        let GenerateOutput { sequences, prompt_length, new_tokens, steps } = output;
        Self { sequences, prompt_length, new_tokens, steps: steps.iter().map(O::as_tuple).collect() }
    }
}
