use super::{WhisperConfig, WhisperDecoder, WhisperEncoder, WhisperModel};
use crate::auto::NamedInputs;
use crate::error::ForwardError;
use crate::inputs::{Seq2SeqInputs, SpeechInputs};
use crate::layers::{lm_logits, new_linear};
use crate::models::{ScoredTokens, encode_decode, encoder_decoder, score_tokens, seq2seq_lm};
use crate::outputs::Seq2SeqLMOutput;
use burn::module::Module;
use burn::nn::Linear;
use patching_core::prelude::*;

/// Whisper as a model that writes down or translates speech.
#[derive(Module, Debug)]
pub struct WhisperForConditionalGeneration {
    /// The base model.
    pub model: WhisperModel,
    /// `[hidden, vocabulary]`; none where the config ties it to the embedding.
    pub proj_out: Option<Linear>,
}

impl WhisperForConditionalGeneration {
    /// Fresh parameters.
    pub fn new(config: &WhisperConfig, init: &Init) -> Self {
        Self { model: WhisperModel::new(config, init), proj_out: new_projection(config, init) }
    }

    /// Runs the model and computes logits, `[batch, positions kept, vocabulary]`.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, or something that was
    /// asked for cannot be recorded.
    pub fn forward(
        &self,
        inputs: impl Into<Seq2SeqInputs<SpeechInputs>>,
        kwargs: &ForwardKwargs,
    ) -> Result<Seq2SeqLMOutput, ForwardError> {
        let mut inputs = inputs.into();
        let scored = ScoredTokens::of(&mut inputs.decoder);
        let output = encode_decode(&self.model, inputs, kwargs)?;
        let table = &self.model.decoder.embed_tokens;
        score_tokens(output, scored, |hidden| lm_logits(self.proj_out.as_ref(), table, hidden))
    }
}

/// The head's own weight, unless the config ties it to the embedding.
fn new_projection(config: &WhisperConfig, init: &Init) -> Option<Linear> {
    let own = || new_linear(config.d_model, config.vocab_size, false, config.init_std, init.device());
    (!config.tie_word_embeddings).then(own)
}

/// What a tied head has no parameter for.
fn implied_ties(config: &WhisperConfig) -> Vec<(String, String)> {
    let tie = ("proj_out.weight".to_owned(), "model.decoder.embed_tokens.weight".to_owned());
    config.tie_word_embeddings.then_some(tie).into_iter().collect()
}

encoder_decoder! {
    WhisperForConditionalGeneration(WhisperConfig at model.config) => Seq2SeqLMOutput;
    encoder: WhisperEncoder at model.encoder,
    decoder: WhisperDecoder at model.decoder,
    prefix: "model",
    is_base: false,
    inputs: NamedInputs::SPEECH_TO_TEXT,
    source_mask: |_source| None,
    generates: generate,
    pretrained: {
        fn implied_ties(config: &WhisperConfig) -> Vec<(String, String)> {
            implied_ties(config)
        }
    }
}
seq2seq_lm!(WhisperForConditionalGeneration: SpeechInputs);
