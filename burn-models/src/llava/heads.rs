use super::model::IMAGE_OUTPUTS;
use super::{LlavaCausalLMOutputWithPast, LlavaConfig, LlavaInputs, LlavaModel, LlavaWithImages};
use crate::clip::CLIPVisionModel;
use crate::config::TokenIds;
use crate::error::ForwardError;
use crate::generation::{GenerateError, GenerateOutput, GenerationConfig, generate};
use crate::inputs::{PixelInputs, TextInputs};
use crate::layers::{causal_lm_loss, lm_logits, new_linear, select_positions};
use crate::llama::LlamaModel;
use crate::models::{CausalLM, FeatureLayers, composite};
use crate::outputs::ImageOutputs;
use burn::module::Module;
use burn::nn::Linear;
use patching_core::prelude::*;
use serde_json::Value;

/// LLaVA as a language model that sees images.
#[derive(Module, Debug)]
pub struct LlavaForConditionalGeneration {
    /// The base model.
    pub model: LlavaModel,
    /// `[hidden, vocabulary]`; none where the config ties it to the embedding.
    pub lm_head: Option<Linear>,
    #[module(skip)]
    config: LlavaConfig,
}

impl LlavaForConditionalGeneration {
    /// Fresh parameters.
    pub fn new(config: &LlavaConfig, init: &Init) -> Self {
        let text = &config.text_config;
        let own = || new_linear(text.hidden_size, text.vocab_size, false, text.initializer_range, init.device());
        Self { model: LlavaModel::new(config, init), lm_head: (!config.ties_head()).then(own), config: config.clone() }
    }

    /// As [`LlavaModel::get_image_features`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn get_image_features(
        &self,
        pixel_values: impl Into<PixelInputs>,
        vision_feature_layer: Option<FeatureLayers>,
        vision_feature_select_strategy: Option<String>,
        kwargs: &ForwardKwargs,
    ) -> Result<ImageOutputs, ForwardError> {
        self.model.get_image_features(pixel_values, vision_feature_layer, vision_feature_select_strategy, kwargs)
    }

    /// Reads texts in which images stand and computes logits, `[batch, positions kept, vocabulary]`; recorded is as in
    /// [`LlavaModel::forward`].
    ///
    /// # Errors
    ///
    /// As [`LlavaModel::forward`], and when the labels do not fit.
    pub fn forward(
        &self,
        inputs: impl Into<LlavaInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<LlavaCausalLMOutputWithPast, ForwardError> {
        let mut inputs = inputs.into();
        let labels = inputs.text.labels.take();
        let keep = std::mem::take(&mut inputs.text.logits_to_keep);
        let mut base = self.model.forward(inputs, kwargs)?;
        let hidden = select_positions(base.last_hidden_state.clone(), keep)?;
        let logits = lm_logits(self.lm_head.as_ref(), &self.model.language_model.embed_tokens, hidden);
        let mut output = LlavaCausalLMOutputWithPast::new(logits.clone());
        output.loss = labels.map(|labels| causal_lm_loss(logits, labels)).transpose()?;
        output.cache = base.cache.take();
        output.image_outputs = base.image_outputs.take();
        base.pass_on(&mut output)?;
        Ok(output)
    }

    /// Continues texts in which images stand; see [`generate`](fn@crate::generation::generate). The images are seen at
    /// the first step, and what is recorded of them is in its output.
    ///
    /// # Errors
    ///
    /// When the inputs or the generation config do not fit, or a forward pass fails.
    pub fn generate(
        &self,
        inputs: impl Into<LlavaInputs>,
        config: &GenerationConfig,
        kwargs: &ForwardKwargs,
    ) -> Result<GenerateOutput<LlavaCausalLMOutputWithPast>, GenerateError> {
        let (model, text) = LlavaWithImages::new(self, inputs.into());
        generate(&model, text, config, kwargs)
    }
}

composite! {
    LlavaForConditionalGeneration(LlavaConfig at config): LlavaInputs => LlavaCausalLMOutputWithPast;
    parts: {
        text(""): LlamaModel at model.language_model,
        images(IMAGE_OUTPUTS): CLIPVisionModel at model.vision_tower
    },
    prefix: "model",
    is_base: false,
    inputs: LlavaInputs::NAMES,
    generates: generate,
    pretrained: {
        fn implied_ties(config: &LlavaConfig) -> Vec<(String, String)> {
            let pair = || ("lm_head.weight".to_owned(), "model.language_model.embed_tokens.weight".to_owned());
            config.ties_head().then(pair).into_iter().collect()
        }
    }
}

/// With texts alone; [`LlavaWithImages`] sees images as well.
impl CausalLM for LlavaForConditionalGeneration {
    type Output = LlavaCausalLMOutputWithPast;

    fn forward_causal(&self, inputs: TextInputs, kwargs: &ForwardKwargs) -> Result<Self::Output, ForwardError> {
        // a cache has seen the images, and what was recorded of them was in the output of that step
        match inputs.cache {
            Some(_) => self.forward(inputs, &kwargs.without_prefix(IMAGE_OUTPUTS)),
            None => self.forward(inputs, kwargs),
        }
    }

    fn eos_token_id(&self) -> Option<&TokenIds> {
        self.config.text_config.eos_token_id.as_ref()
    }

    fn pad_token_id(&self) -> Option<i64> {
        let of_whole = self.config.general.extra.get("pad_token_id").and_then(Value::as_i64);
        of_whole.or(self.config.text_config.pad_token_id)
    }
}
