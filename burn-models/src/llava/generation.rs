use super::{LlavaCausalLMOutputWithPast, LlavaForConditionalGeneration, LlavaInputs};
use crate::config::TokenIds;
use crate::error::ForwardError;
use crate::inputs::TextInputs;
use crate::models::CausalLM;
use patching_core::prelude::*;

/// A LLaVA that has images before it: a language model like any other, for
/// [`generate_with`](crate::generation::generate_with).
///
/// The images are seen whenever a text is read from its beginning: at the first step with a cache, at every step
/// without.
#[derive(Clone, Debug)]
pub struct LlavaWithImages<'m> {
    model: &'m LlavaForConditionalGeneration,
    inputs: LlavaInputs,
}

impl<'m> LlavaWithImages<'m> {
    /// The model with the images of `inputs`, and the texts to be continued.
    pub fn new(model: &'m LlavaForConditionalGeneration, mut inputs: LlavaInputs) -> (Self, TextInputs) {
        let text = std::mem::take(&mut inputs.text);
        (Self { model, inputs }, text)
    }
}

impl CausalLM for LlavaWithImages<'_> {
    type Output = LlavaCausalLMOutputWithPast;

    fn forward_causal(&self, text: TextInputs, kwargs: &ForwardKwargs) -> Result<Self::Output, ForwardError> {
        match text.cache {
            // which has seen the images
            Some(_) => self.model.forward_causal(text, kwargs),
            None => self.model.forward(LlavaInputs { text, ..self.inputs.clone() }, kwargs),
        }
    }

    fn eos_token_id(&self) -> Option<&TokenIds> {
        self.model.eos_token_id()
    }

    fn pad_token_id(&self) -> Option<i64> {
        self.model.pad_token_id()
    }
}
