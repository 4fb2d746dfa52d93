use super::model::{SHARING, shared, ties, untied};
use super::{T5Config, T5Stack};
use crate::error::ForwardError;
use crate::inputs::TextInputs;
use crate::layers::embedded;
use crate::models::base_tower;
use crate::outputs::BaseModelOutputWithPastAndCrossAttentions;
use burn::module::Module;
use burn::nn::Embedding;
use patching_core::prelude::*;

/// T5's encoder alone.
#[derive(Module, Debug)]
pub struct T5EncoderModel {
    /// The embedding, `[vocabulary, hidden]`.
    pub shared: Embedding,
    /// The encoder.
    pub encoder: T5Stack,
    #[module(skip)]
    config: T5Config,
}

impl T5EncoderModel {
    /// Fresh parameters.
    pub fn new(config: &T5Config, init: &Init) -> Self {
        let of_encoder = T5Config { use_cache: false, ..config.clone() };
        let encoder = T5Stack::new(&of_encoder, config.untied.encoder, init);
        Self { shared: shared(config, init), encoder, config: config.clone() }
    }

    /// Runs the encoder; what `kwargs` and the config ask for is recorded.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, or something that was
    /// asked for cannot be recorded.
    pub fn forward(
        &self,
        inputs: impl Into<TextInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<BaseModelOutputWithPastAndCrossAttentions, ForwardError> {
        self.encoder.forward(self.embedded(inputs.into())?, kwargs)
    }

    fn embedded(&self, inputs: TextInputs) -> Result<TextInputs, ForwardError> {
        embedded(inputs, self.encoder.embed_tokens.as_ref().unwrap_or(&self.shared))
    }
}

base_tower! {
    T5EncoderModel(T5Config): TextInputs => BaseModelOutputWithPastAndCrossAttentions;
    prefix: "transformer",
    inputs: &["input_ids", "attention_mask", "inputs_embeds"],
    is_base: false,
    around encoder: T5Stack,
    given: embedded,
    pretrained: {
        fn implied_ties(config: &T5Config) -> Vec<(String, String)> {
            ties(config, "", &SHARING[..1])
        }

        fn untied(config: &T5Config, key: &str) -> Option<T5Config> {
            untied(config, key)
        }
    }
}
