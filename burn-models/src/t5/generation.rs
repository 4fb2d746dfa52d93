use super::model::{SHARING, shared, stacks, ties, untied};
use super::{T5Config, T5Stack};
use crate::auto::NamedInputs;
use crate::error::ForwardError;
use crate::inputs::{Seq2SeqInputs, TextInputs};
use crate::layers::{lm_logits, new_linear};
use crate::models::{ScoredTokens, encode_decode, encoder_decoder, score_tokens, seq2seq_lm};
use crate::outputs::Seq2SeqLMOutput;
use burn::module::Module;
use burn::nn::{Embedding, Linear};
use patching_core::prelude::*;

/// T5 as a language model that answers a text.
#[derive(Module, Debug)]
pub struct T5ForConditionalGeneration {
    /// The embedding of both, `[vocabulary, hidden]`.
    pub shared: Embedding,
    /// The encoder.
    pub encoder: T5Stack,
    /// The decoder.
    pub decoder: T5Stack,
    /// `[hidden, vocabulary]`; none where it shares the embedding's weight.
    pub lm_head: Option<Linear>,
    #[module(skip)]
    config: T5Config,
}

impl T5ForConditionalGeneration {
    /// Fresh parameters.
    pub fn new(config: &T5Config, init: &Init) -> Self {
        let [encoder, decoder] = stacks(config, init);
        let head = || {
            let std = config.initializer_factor;
            new_linear(config.d_model, config.vocab_size, false, std, init.device())
        };
        let lm_head = config.untied.lm_head.then(head);
        Self { shared: shared(config, init), encoder, decoder, lm_head, config: config.clone() }
    }

    /// Runs the encoder, unless what it gave is known, and the decoder, and computes logits, `[batch, positions kept,
    /// vocabulary]`.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, or something that was
    /// asked for cannot be recorded.
    pub fn forward(
        &self,
        inputs: impl Into<Seq2SeqInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<Seq2SeqLMOutput, ForwardError> {
        let mut inputs = inputs.into();
        let scored = ScoredTokens::of(&mut inputs.decoder);
        let output = encode_decode(self, inputs, kwargs)?;
        score_tokens(output, scored, |hidden_states| {
            let hidden_states = match self.config.scales_outputs() {
                true => hidden_states * (self.config.d_model as f64).powf(-0.5),
                false => hidden_states,
            };
            lm_logits(self.lm_head.as_ref(), &self.shared, hidden_states)
        })
    }
}

encoder_decoder! {
    T5ForConditionalGeneration(T5Config at config) => Seq2SeqLMOutput;
    encoder: T5Stack at encoder,
    decoder: T5Stack at decoder,
    prefix: "transformer",
    is_base: false,
    inputs: NamedInputs::TEXT_TO_TEXT,
    source_mask: |source| source.attention_mask.clone(),
    embedding: shared,
    generates: generate,
    pretrained: {
        fn implied_ties(config: &T5Config) -> Vec<(String, String)> {
            ties(config, "", &SHARING)
        }

        fn untied(config: &T5Config, key: &str) -> Option<T5Config> {
            untied(config, key)
        }
    }
}
seq2seq_lm!(T5ForConditionalGeneration: TextInputs);
