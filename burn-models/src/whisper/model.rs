use super::{WhisperConfig, WhisperDecoder, WhisperEncoder};
use crate::auto::NamedInputs;
use crate::error::ForwardError;
use crate::inputs::{Seq2SeqInputs, SpeechInputs};
use crate::models::{encode_decode, encoder_decoder, no_labels};
use crate::outputs::Seq2SeqModelOutput;
use burn::module::Module;
use patching_core::prelude::*;

/// Whisper without a head.
#[derive(Module, Debug)]
pub struct WhisperModel {
    /// What listens.
    pub encoder: WhisperEncoder,
    /// What writes.
    pub decoder: WhisperDecoder,
    #[module(skip)]
    pub(super) config: WhisperConfig,
}

impl WhisperModel {
    /// Fresh parameters.
    pub fn new(config: &WhisperConfig, init: &Init) -> Self {
        Self {
            encoder: WhisperEncoder::new(config, init),
            decoder: WhisperDecoder::new(config, init),
            config: config.clone(),
        }
    }

    /// Runs both parts; what `kwargs` and the config ask for is recorded.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, or something that was
    /// asked for cannot be recorded.
    pub fn forward(
        &self,
        inputs: impl Into<Seq2SeqInputs<SpeechInputs>>,
        kwargs: &ForwardKwargs,
    ) -> Result<Seq2SeqModelOutput, ForwardError> {
        let inputs = inputs.into();
        no_labels(&self.config.general, &inputs.decoder)?;
        encode_decode(self, inputs, kwargs)
    }
}

encoder_decoder! {
    WhisperModel(WhisperConfig at config) => Seq2SeqModelOutput;
    encoder: WhisperEncoder at encoder,
    decoder: WhisperDecoder at decoder,
    prefix: "model",
    is_base: true,
    inputs: NamedInputs::SPEECH_TO_TEXT_BASE,
    source_mask: |_source| None
}
