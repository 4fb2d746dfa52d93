use super::model::{SHARING, shared, ties, untied};
use super::{T5Config, T5Stack};
use crate::auto::model_class;
use crate::config::ConfigError;
use crate::error::ForwardError;
use crate::inputs::TextInputs;
use crate::layers::embedded;
use crate::models::{Model, Tower, declared_keys};
use crate::outputs::BaseModelOutputWithPastAndCrossAttentions;
use burn::module::Module;
use burn::nn::Embedding;
use patching_core::capture::{CapturePlan, Captures, OutputRecorder};
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

    /// Chooses the attention implementation of a live model.
    ///
    /// # Errors
    ///
    /// An unknown name is an error that lists the choices.
    pub fn set_attn_implementation(&mut self, name: &str) -> Result<(), ConfigError> {
        self.set_tower_attention(name)
    }

    fn embedded(&self, inputs: TextInputs) -> Result<TextInputs, ForwardError> {
        embedded(inputs, self.encoder.embed_tokens.as_ref().unwrap_or(&self.shared))
    }
}

/// It records what its encoder does.
impl CanRecordOutputs for T5EncoderModel {
    const MODEL: &'static str = "T5EncoderModel";
    const RECORDERS: &'static [OutputRecorder] = T5Stack::RECORDERS;

    fn output_recorders(&self) -> &OutputRecorders {
        self.encoder.output_recorders()
    }
}

impl Tower for T5EncoderModel {
    type Inputs = TextInputs;
    type Output = BaseModelOutputWithPastAndCrossAttentions;

    fn run_tower(&self, inputs: TextInputs, kwargs: &ForwardKwargs) -> Result<Self::Output, ForwardError> {
        self.forward(inputs, kwargs)
    }

    fn tower_plan(&self, kwargs: &ForwardKwargs) -> Result<CapturePlan, CaptureError> {
        self.encoder.tower_plan(kwargs)
    }

    fn tower_captures(
        &self,
        inputs: TextInputs,
        kwargs: &ForwardKwargs,
    ) -> Result<Captures<Self::Output>, ForwardError> {
        self.encoder.forward_captures(self.embedded(inputs)?, kwargs)
    }

    fn set_tower_attention(&mut self, name: &str) -> Result<(), ConfigError> {
        self.encoder.set_tower_attention(name)?;
        self.config.general.attn_implementation = Some(name.to_owned());
        Ok(())
    }
}

impl PreTrainedModel for T5EncoderModel {
    type Config = T5Config;
    const CLASS_NAME: &'static str = "T5EncoderModel";
    const BASE_MODEL_PREFIX: &'static str = "transformer";

    fn new(config: &T5Config, init: &Init) -> Self {
        Self::new(config, init)
    }

    fn config(&self) -> &T5Config {
        &self.config
    }

    fn implied_ties(config: &T5Config) -> Vec<(String, String)> {
        ties(config, "", &SHARING[..1])
    }

    fn untied(config: &T5Config, key: &str) -> Option<T5Config> {
        untied(config, key)
    }
}

impl Model for T5EncoderModel {
    type Inputs = TextInputs;
    type Output = BaseModelOutputWithPastAndCrossAttentions;
    const INPUT_NAMES: &'static [&'static str] = &["input_ids", "attention_mask", "inputs_embeds"];

    fn run(&self, inputs: TextInputs, kwargs: &ForwardKwargs) -> Result<Self::Output, ForwardError> {
        self.forward(inputs, kwargs)
    }

    fn capture_plan(&self, kwargs: &ForwardKwargs) -> Result<CapturePlan, CaptureError> {
        self.tower_plan(kwargs)
    }

    fn recordable_keys() -> Vec<String> {
        declared_keys::<T5Stack>()
    }

    fn set_attn_implementation(&mut self, name: &str) -> Result<(), ConfigError> {
        self.set_tower_attention(name)
    }
}

model_class!(T5EncoderModel);
