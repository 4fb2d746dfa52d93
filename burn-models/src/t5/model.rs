use super::{T5Config, T5Stack, T5Untied};
use crate::auto::NamedInputs;
use crate::error::ForwardError;
use crate::inputs::Seq2SeqInputs;
use crate::layers::new_embedding;
use crate::models::{encode_decode, encoder_decoder, no_labels};
use crate::outputs::Seq2SeqModelOutput;
use burn::module::Module;
use burn::nn::Embedding;
use patching_core::prelude::*;

/// T5 without a head: an encoder, and a decoder that looks at what it gives.
#[derive(Module, Debug)]
pub struct T5Model {
    /// The embedding of both, `[vocabulary, hidden]`.
    pub shared: Embedding,
    /// The encoder.
    pub encoder: T5Stack,
    /// The decoder.
    pub decoder: T5Stack,
    #[module(skip)]
    pub(super) config: T5Config,
}

impl T5Model {
    /// Fresh parameters.
    pub fn new(config: &T5Config, init: &Init) -> Self {
        let [encoder, decoder] = stacks(config, init);
        Self { shared: shared(config, init), encoder, decoder, config: config.clone() }
    }

    /// Runs the encoder, unless what it gave is known, and the decoder; what `kwargs` and the config ask for is recorded.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, or something that was
    /// asked for cannot be recorded.
    pub fn forward(
        &self,
        inputs: impl Into<Seq2SeqInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<Seq2SeqModelOutput, ForwardError> {
        let inputs = inputs.into();
        no_labels(&self.config.general, &inputs.decoder)?;
        encode_decode(self, inputs, kwargs)
    }
}

/// The embedding of a model.
pub(super) fn shared(config: &T5Config, init: &Init) -> Embedding {
    new_embedding(config.vocab_size, config.d_model, config.initializer_factor, init.device())
}

/// An encoder and a decoder.
pub(super) fn stacks(config: &T5Config, init: &Init) -> [T5Stack; 2] {
    let T5Untied { encoder, decoder, lm_head: _ } = config.untied;
    [T5Stack::new(&config.of_encoder(), encoder, init), T5Stack::new(&config.of_decoder(), decoder, init)]
}

/// The tensors of a checkpoint that may share the embedding's parameter: an encoder has the first, a model without a head
/// the first two.
pub(super) const SHARING: [&str; 3] = ["encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"];

/// Those of them that do, in a model whose keys begin with `prefix`.
pub(super) fn ties(config: &T5Config, prefix: &str, sharing: &[&str]) -> Vec<(String, String)> {
    let T5Untied { encoder, decoder, lm_head } = config.untied;
    let tied = sharing.iter().zip([encoder, decoder, lm_head]).filter(|(_, is_own)| !is_own);
    tied.map(|(key, _)| (format!("{prefix}{key}"), format!("{prefix}shared.weight"))).collect()
}

/// The config of a model in which the tensor `key` has a parameter of its own.
pub(super) fn untied(config: &T5Config, key: &str) -> Option<T5Config> {
    let mut config = config.clone();
    let T5Untied { encoder, decoder, lm_head } = &mut config.untied;
    let sharing = SHARING.iter().zip([encoder, decoder, lm_head]);
    let (_, is_own) = sharing.into_iter().find(|(known, _)| key.ends_with(*known))?;
    *is_own = true;
    Some(config)
}

encoder_decoder! {
    T5Model(T5Config at config) => Seq2SeqModelOutput;
    encoder: T5Stack at encoder,
    decoder: T5Stack at decoder,
    prefix: "transformer",
    is_base: true,
    inputs: NamedInputs::TEXT_TO_TEXT_BASE,
    source_mask: |source| source.attention_mask.clone(),
    embedding: shared,
    pretrained: {
        fn implied_ties(config: &T5Config) -> Vec<(String, String)> {
            ties(config, "", &SHARING[..2])
        }

        fn untied(config: &T5Config, key: &str) -> Option<T5Config> {
            untied(config, key)
        }
    }
}
