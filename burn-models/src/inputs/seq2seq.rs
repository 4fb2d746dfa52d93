use super::{Labels, TextInputs};
use crate::layers::Cache;
use burn::tensor::{Int, Tensor};

/// What an encoder and a decoder are given; `S` is what the encoder reads.
#[derive(Clone, Debug)]
pub struct Seq2SeqInputs<S = TextInputs> {
    /// What the encoder reads; none if what it gave is known.
    pub source: Option<S>,
    /// What the encoder gave, `[batch, source, hidden]`, in place of `source`.
    pub encoder_last_hidden_state: Option<Tensor<3>>,
    /// Beside `encoder_last_hidden_state`: `[batch, source]`, zero where a position is padding.
    pub encoder_attention_mask: Option<Tensor<2, Int>>,
    /// What the decoder reads, with its cache and the expected answers. Without tokens, they are the labels moved to the
    /// right.
    pub decoder: TextInputs,
}

impl<S> Seq2SeqInputs<S> {
    /// What the encoder reads, and nothing yet for the decoder: for generation, or with labels.
    pub fn new(source: impl Into<S>) -> Self {
        Self {
            source: Some(source.into()),
            encoder_last_hidden_state: None,
            encoder_attention_mask: None,
            decoder: TextInputs::default(),
        }
    }

    /// What the encoder gave, `[batch, source, hidden]`, in place of what it reads.
    pub fn encoded(last_hidden_state: Tensor<3>) -> Self {
        Self {
            source: None,
            encoder_last_hidden_state: Some(last_hidden_state),
            encoder_attention_mask: None,
            decoder: TextInputs::default(),
        }
    }

    /// Says which positions of what the encoder gave are padding (zero), `[batch, source]`.
    pub fn encoder_attention_mask(mut self, mask: impl Into<Option<Tensor<2, Int>>>) -> Self {
        self.encoder_attention_mask = mask.into();
        self
    }

    /// What the decoder reads.
    pub fn decoder(mut self, decoder: impl Into<TextInputs>) -> Self {
        self.decoder = decoder.into();
        self
    }

    /// The tokens that the decoder reads, `[batch, seq]`.
    pub fn decoder_input_ids(mut self, ids: impl Into<Option<Tensor<2, Int>>>) -> Self {
        self.decoder.input_ids = ids.into();
        self
    }

    /// Goes on after what `cache` has seen.
    pub fn cache(mut self, cache: impl Into<Option<Cache>>) -> Self {
        self.decoder.cache = cache.into();
        self
    }

    /// Asks for a loss.
    pub fn labels(mut self, labels: impl Into<Labels>) -> Self {
        self.decoder.labels = Some(labels.into());
        self
    }
}

/// What the encoder reads alone, for generation.
impl<S> From<S> for Seq2SeqInputs<S> {
    fn from(source: S) -> Self {
        Self::new(source)
    }
}

impl From<Tensor<3>> for Seq2SeqInputs<super::SpeechInputs> {
    fn from(input_features: Tensor<3>) -> Self {
        Self::new(input_features)
    }
}
