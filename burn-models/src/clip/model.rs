use super::heads::new_projection;
use super::{CLIPConfig, CLIPOutput, CLIPTextModel, CLIPVisionModel};
use crate::auto::NamedInputs;
use crate::error::ForwardError;
use crate::inputs::{PixelInputs, TextImageInputs, TextInputs};
use crate::layers::{contrastive_loss, linear};
use crate::models::composite;
use crate::outputs::BaseModelOutputWithPooling;
use burn::module::{Initializer, Module, Param};
use burn::nn::Linear;
use burn::tensor::Tensor;
use patching_core::capture::Part;
use patching_core::prelude::*;
use patching_core::weights::{LayoutRules, ParameterLayout};

/// CLIP: how alike texts and images are.
#[derive(Module, Debug)]
pub struct CLIPModel {
    /// The text tower.
    pub text_model: CLIPTextModel,
    /// The vision tower.
    pub vision_model: CLIPVisionModel,
    /// `[hidden, projection]`
    pub visual_projection: Linear,
    /// `[hidden, projection]`
    pub text_projection: Linear,
    /// The logarithm of what likenesses are multiplied by, `[1]`.
    pub logit_scale: Param<Tensor<1>>,
    #[module(skip)]
    config: CLIPConfig,
}

impl CLIPModel {
    /// Fresh parameters.
    pub fn new(config: &CLIPConfig, init: &Init) -> Self {
        let projection = |size| new_projection((size, config.projection_dim), config.initializer_factor, init);
        let scale = Initializer::Constant { value: config.logit_scale_init_value };
        Self {
            text_model: CLIPTextModel::new(&config.text_config, init),
            vision_model: CLIPVisionModel::new(&config.vision_config, init),
            visual_projection: projection(config.vision_config.hidden_size),
            text_projection: projection(config.text_config.hidden_size),
            logit_scale: scale.init([1], init.device()),
            config: config.clone(),
        }
    }

    /// What texts are compared by: the text tower's output with a pooled output that is projected, `[texts, projection]`.
    ///
    /// # Errors
    ///
    /// As [`CLIPTextModel::forward`].
    pub fn get_text_features(
        &self,
        inputs: impl Into<TextInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<BaseModelOutputWithPooling, ForwardError> {
        let [request] = kwargs.split(Self::CLASS_NAME, &self.config, &[Part::of::<CLIPTextModel>(TEXT)])?;
        self.text_features(inputs.into(), &request)
    }

    /// What images are compared by: the vision tower's output with a pooled output that is projected,
    /// `[images, projection]`.
    ///
    /// # Errors
    ///
    /// As [`CLIPVisionModel::forward`].
    pub fn get_image_features(
        &self,
        inputs: impl Into<PixelInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<BaseModelOutputWithPooling, ForwardError> {
        let [request] = kwargs.split(Self::CLASS_NAME, &self.config, &[Part::of::<CLIPVisionModel>(VISION)])?;
        self.image_features(inputs.into(), &request)
    }

    fn text_features(
        &self,
        inputs: TextInputs,
        kwargs: &ForwardKwargs,
    ) -> Result<BaseModelOutputWithPooling, ForwardError> {
        let mut output = self.text_model.forward(inputs, kwargs)?;
        output.pooler_output = output.pooler_output.map(|pooled| linear(&self.text_projection, pooled));
        Ok(output)
    }

    fn image_features(
        &self,
        inputs: PixelInputs,
        kwargs: &ForwardKwargs,
    ) -> Result<BaseModelOutputWithPooling, ForwardError> {
        let mut output = self.vision_model.forward(inputs, kwargs)?;
        output.pooler_output = output.pooler_output.map(|pooled| linear(&self.visual_projection, pooled));
        Ok(output)
    }

    /// Compares all texts with all images. What `kwargs` asks for is recorded in both towers, or with the prefix
    /// `text_model_output.` or `vision_model_output.` in one of them.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, or are such that the model has no use for; when the config names an implementation
    /// that is not registered; when something that was asked for cannot be recorded; when a loss is wanted and there are
    /// not as many texts as images.
    pub fn forward(
        &self,
        inputs: impl Into<TextImageInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<CLIPOutput, ForwardError> {
        let TextImageInputs { text, image, return_loss } = inputs.into();
        let general = &self.config.general;
        let image = image.ok_or_else(|| ForwardError::Absent {
            model: general.model_type.clone(),
            name: "pixel_values",
            because: ": it compares texts with images",
        })?;
        let [of_text, of_vision] = self.requests(kwargs)?;
        let vision_model_output = self.image_features(image, &of_vision)?;
        let text_model_output = self.text_features(text, &of_text)?;
        let image_embeds = of_length_one(vision_model_output.pooled(general)?);
        let text_embeds = of_length_one(text_model_output.pooled(general)?);
        let alike = text_embeds.clone().matmul(image_embeds.clone().transpose());
        let per_text = alike * self.logit_scale.val().exp().unsqueeze();
        let loss = return_loss.then(|| contrastive_loss(per_text.clone())).transpose()?;
        let per_image = per_text.clone().transpose();
        let mut output =
            CLIPOutput::new(per_image, per_text, text_embeds, image_embeds, text_model_output, vision_model_output);
        output.loss = loss;
        Ok(output)
    }
}

/// Rows `[batch, size]` divided by their length.
fn of_length_one(rows: Tensor<2>) -> Tensor<2> {
    let length = rows.clone().square().sum_dim(1).sqrt();
    rows / length
}

/// Where the output of the text tower lies in that of the whole.
const TEXT: &str = "text_model_output.";
/// The same for the vision tower.
const VISION: &str = "vision_model_output.";

composite! {
    CLIPModel(CLIPConfig at config): TextImageInputs => CLIPOutput;
    parts: {
        text(TEXT): CLIPTextModel at text_model,
        vision(VISION): CLIPVisionModel at vision_model
    },
    prefix: "clip",
    is_base: true,
    inputs: NamedInputs::TEXT_AND_PIXELS,
    pretrained: {
        fn layouts(_: &CLIPConfig) -> LayoutRules {
            LayoutRules::default().path("logit_scale", ParameterLayout::same().scalar())
        }
    }
}
