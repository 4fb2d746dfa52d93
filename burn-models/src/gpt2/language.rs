use super::layouts::layouts;
use super::{GPT2Config, GPT2Model};
use crate::auto::NamedInputs;
use crate::layers::{causal_lm_loss, lm_logits, new_linear};
use crate::models::{NextTokens, generates_text, model_head};
use crate::{CausalLMOutputWithCrossAttentions, ForwardError, TextInputs};
use burn::module::Module;
use burn::nn::Linear;
use patching_core::prelude::*;
use patching_core::weights::LayoutRules;

/// GPT-2 as a language model.
#[derive(Module, Debug)]
pub struct GPT2LMHeadModel {
    /// The base model.
    pub transformer: GPT2Model,
    /// `[hidden, vocabulary]`; none where the config ties it to the embedding.
    pub lm_head: Option<Linear>,
}

impl GPT2LMHeadModel {
    /// Fresh parameters.
    pub fn new(config: &GPT2Config, init: &Init) -> Self {
        let head = || new_linear(config.n_embd, config.vocab_size, false, config.initializer_range, init.device());
        Self { transformer: GPT2Model::new(config, init), lm_head: (!config.tie_word_embeddings).then(head) }
    }

    /// Runs the model and computes logits, `[batch, positions kept, vocabulary]`.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, or something that was asked
    /// for cannot be recorded.
    pub fn forward(
        &self,
        inputs: impl Into<TextInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<CausalLMOutputWithCrossAttentions, ForwardError> {
        let mut inputs = inputs.into();
        let (labels, logits_to_keep) = (inputs.labels.take(), std::mem::take(&mut inputs.logits_to_keep));
        let mut base = self.transformer.forward(inputs, kwargs)?;
        let cache = base.cache.take();
        NextTokens { base, cache, logits_to_keep, labels, loss: causal_lm_loss }
            .scored(|hidden_states| lm_logits(self.lm_head.as_ref(), &self.transformer.wte, hidden_states))
    }
}

model_head! {
    GPT2LMHeadModel { transformer: GPT2Model }(GPT2Config): TextInputs => CausalLMOutputWithCrossAttentions;
    prefix: "transformer",
    inputs: NamedInputs::TEXT_WITH_TYPES,
    generates: generate,
    pretrained: {
        fn implied_ties(config: &GPT2Config) -> Vec<(String, String)> {
            let pair = || ("lm_head.weight".to_owned(), "transformer.wte.weight".to_owned());
            config.tie_word_embeddings.then(pair).into_iter().collect()
        }
        fn layouts(_config: &GPT2Config) -> LayoutRules {
            layouts()
        }
    }
}

generates_text!(GPT2LMHeadModel => CausalLMOutputWithCrossAttentions);
