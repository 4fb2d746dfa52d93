use super::{LlavaConfig, LlavaInputs, LlavaModelOutputWithPast, LlavaMultiModalProjector};
use crate::clip::CLIPVisionModel;
use crate::error::ForwardError;
use crate::inputs::{PixelInputs, TextInputs};
use crate::layers::Tokens;
use crate::llama::LlamaModel;
use crate::models::{FeatureLayers, composite, image_features, placed_features};
use crate::outputs::ImageOutputs;
use burn::module::Module;
use burn::tensor::{Int, Tensor};
use patching_core::capture::Part;
use patching_core::prelude::*;

/// LLaVA without a head.
#[derive(Module, Debug)]
pub struct LlavaModel {
    /// What sees images.
    pub vision_tower: CLIPVisionModel,
    /// What makes tokens of what is seen.
    pub multi_modal_projector: Slot<LlavaMultiModalProjector>,
    /// What reads.
    pub language_model: LlamaModel,
    #[module(skip)]
    config: LlavaConfig,
}

/// Where what the tower records lies in the output of the whole.
pub(super) const IMAGE_OUTPUTS: &str = "image_outputs.";

impl LlavaModel {
    /// Fresh parameters.
    pub fn new(config: &LlavaConfig, init: &Init) -> Self {
        Self {
            vision_tower: CLIPVisionModel::new(&config.vision_config, init),
            multi_modal_projector: LlavaMultiModalProjector::slot(config, init),
            language_model: LlamaModel::new(&config.text_config, init),
            config: config.clone(),
        }
    }

    /// What takes the place of image tokens, `[images, tokens, text hidden]`: the output's `pooler_output`.
    ///
    /// Of the tower's hidden states those are kept that features are made of, and the tower stops when it has them,
    /// unless more is asked for.
    ///
    /// # Errors
    ///
    /// As [`CLIPVisionModel::forward`]; when there is no such layer or strategy, or not as many layers as the projector
    /// was made for.
    #[merge_with_config_defaults]
    pub fn get_image_features(
        &self,
        pixel_values: impl Into<PixelInputs>,
        vision_feature_layer: Option<FeatureLayers>,
        vision_feature_select_strategy: Option<String>,
        kwargs: &ForwardKwargs,
    ) -> Result<ImageOutputs, ForwardError> {
        // below the macro both are there
        let layers = vision_feature_layer.as_ref().unwrap_or(&self.config.vision_feature_layer);
        let strategy = vision_feature_select_strategy.as_deref().unwrap_or_default();
        let (found, expected) = (layers.as_slice().len(), self.config.vision_feature_layer.as_slice().len());
        if found != expected {
            let expected = format!("[{expected}]: the projector was made for so many hidden states");
            return Err(ForwardError::Shape { name: "vision_feature_layer", found: vec![found], expected });
        }
        let parts = [Part::of::<CLIPVisionModel>(IMAGE_OUTPUTS)];
        let [request] = kwargs.split(Self::CLASS_NAME, &self.config, &parts)?;
        let mut output = image_features(&self.vision_tower, pixel_values.into(), layers, strategy, &request)?;
        output.pooler_output = self.multi_modal_projector.forward(output.pooler_output);
        Ok(output)
    }

    /// Reads texts in which images stand. What `kwargs` asks for is recorded in the language model and in the tower, or
    /// with the prefix `image_outputs.` in the tower alone.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, or there are not as many image tokens as features; when the config names an
    /// implementation that is not registered; when something that was asked for cannot be recorded: without images,
    /// nothing is in the tower.
    pub fn forward(
        &self,
        inputs: impl Into<LlavaInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<LlavaModelOutputWithPast, ForwardError> {
        let LlavaInputs { text, image, vision_feature_layer, vision_feature_select_strategy } = inputs.into();
        let (text, request, image_outputs) = match image {
            Some(image) => {
                let [of_text, of_images] = self.requests(kwargs)?;
                let images =
                    self.get_image_features(image, vision_feature_layer, vision_feature_select_strategy, &of_images)?;
                let text = self.with_features(text, images.pooler_output.clone())?;
                (text, of_text, Some(images))
            }
            None => {
                self.refuse_features(vision_feature_layer.is_some(), vision_feature_select_strategy.is_some())?;
                let [of_text] = kwargs.split(Self::CLASS_NAME, &self.config, &[Part::of::<LlamaModel>("")])?;
                (text, of_text, None)
            }
        };
        let mut base = self.language_model.forward(text, &request)?;
        let mut output = LlavaModelOutputWithPast::new(base.last_hidden_state.clone());
        output.cache = base.cache.take();
        output.image_outputs = image_outputs;
        base.pass_on(&mut output)?;
        Ok(output)
    }

    /// Which features are wanted says nothing without images.
    fn refuse_features(&self, layer: bool, strategy: bool) -> Result<(), ForwardError> {
        let given = [("vision_feature_layer", layer), ("vision_feature_select_strategy", strategy)];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((name, _)) => Err(ForwardError::Unused {
                model: self.config.general.model_type.clone(),
                name,
                because: " without `pixel_values`",
            }),
            None => Ok(()),
        }
    }

    /// The texts embedded, with features in place of image tokens.
    fn with_features(&self, mut text: TextInputs, features: Tensor<3>) -> Result<TextInputs, ForwardError> {
        let (table, token) = (&self.language_model.embed_tokens, self.config.image_token_index);
        let tokens = Tokens::new(text.input_ids.take(), text.inputs_embeds.take(), table)?;
        let marks = match &tokens {
            Tokens::Ids(ids) => ids.clone().equal_scalar(token),
            Tokens::Embeds(embeds) => {
                // what was embedded as an image token
                let id = Tensor::<2, Int>::full([1, 1], token, &embeds.device());
                let row = Tokens::new(Some(id), None, table)?.embed(table);
                embeds.clone().equal(row.expand(embeds.dims())).all_dim(2).squeeze_dim(2)
            }
        };
        let embeds = placed_features(tokens.embed(table), marks, features)?;
        Ok(TextInputs { inputs_embeds: Some(embeds), ..text })
    }
}

composite! {
    LlavaModel(LlavaConfig at config): LlavaInputs => LlavaModelOutputWithPast;
    parts: {
        text(""): LlamaModel at language_model,
        images(IMAGE_OUTPUTS): CLIPVisionModel at vision_tower
    },
    prefix: "model",
    is_base: true,
    inputs: LlavaInputs::NAMES_BASE
}
