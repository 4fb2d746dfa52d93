use super::{
    CLIPConfig, CLIPTextConfig, CLIPTextModel, CLIPTextModelOutput, CLIPVisionConfig, CLIPVisionModel,
    CLIPVisionModelOutput,
};
use crate::auto::NamedInputs;
use crate::error::ForwardError;
use crate::inputs::{PixelInputs, TextInputs};
use crate::layers::{classification_loss, linear, new_linear};
use crate::models::{composite, model_head};
use crate::outputs::ImageClassifierOutput;
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// CLIP's text tower with the projection to what texts and images are compared by.
#[derive(Module, Debug)]
pub struct CLIPTextModelWithProjection {
    /// The tower.
    pub text_model: CLIPTextModel,
    /// `[hidden, projection]`
    pub text_projection: Linear,
}

impl CLIPTextModelWithProjection {
    /// Fresh parameters.
    pub fn new(config: &CLIPTextConfig, init: &Init) -> Self {
        let projection = (config.hidden_size, config.projection_dim());
        Self {
            text_model: CLIPTextModel::new(config, init),
            text_projection: new_projection(projection, config.initializer_factor, init),
        }
    }

    /// Runs the tower and projects what stands for each text.
    ///
    /// # Errors
    ///
    /// As [`CLIPTextModel::forward`].
    pub fn forward(
        &self,
        inputs: impl Into<TextInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<CLIPTextModelOutput, ForwardError> {
        let mut base = self.text_model.forward(inputs, kwargs)?;
        let pooled = base.pooled(&self.config().general)?;
        let embeds = linear(&self.text_projection, pooled);
        let mut output = CLIPTextModelOutput::new(embeds, base.last_hidden_state.clone());
        base.pass_on(&mut output)?;
        Ok(output)
    }
}

model_head! {
    CLIPTextModelWithProjection { text_model: CLIPTextModel }(CLIPTextConfig): TextInputs => CLIPTextModelOutput;
    prefix: "text_model",
    inputs: <CLIPTextModel as crate::models::Model>::INPUT_NAMES
}

/// CLIP's vision tower with the projection to what texts and images are compared by.
#[derive(Module, Debug)]
pub struct CLIPVisionModelWithProjection {
    /// The tower.
    pub vision_model: CLIPVisionModel,
    /// `[hidden, projection]`
    pub visual_projection: Linear,
}

impl CLIPVisionModelWithProjection {
    /// Fresh parameters.
    pub fn new(config: &CLIPVisionConfig, init: &Init) -> Self {
        let projection = (config.hidden_size, config.projection_dim);
        Self {
            vision_model: CLIPVisionModel::new(config, init),
            visual_projection: new_projection(projection, config.initializer_factor, init),
        }
    }

    /// Runs the tower and projects what stands for each image.
    ///
    /// # Errors
    ///
    /// As [`CLIPVisionModel::forward`].
    pub fn forward(
        &self,
        inputs: impl Into<PixelInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<CLIPVisionModelOutput, ForwardError> {
        let mut base = self.vision_model.forward(inputs, kwargs)?;
        let pooled = base.pooled(&self.config().general)?;
        let embeds = linear(&self.visual_projection, pooled);
        let mut output = CLIPVisionModelOutput::new(embeds, base.last_hidden_state.clone());
        base.pass_on(&mut output)?;
        Ok(output)
    }
}

model_head! {
    CLIPVisionModelWithProjection { vision_model: CLIPVisionModel }(CLIPVisionConfig):
        PixelInputs => CLIPVisionModelOutput;
    prefix: "vision_model",
    inputs: <CLIPVisionModel as crate::models::Model>::INPUT_NAMES
}

/// CLIP's vision tower as a classifier of images.
#[derive(Module, Debug)]
pub struct CLIPForImageClassification {
    /// The tower.
    pub vision_model: CLIPVisionModel,
    /// `[hidden, labels]`
    pub classifier: Linear,
    #[module(skip)]
    config: CLIPConfig,
}

impl CLIPForImageClassification {
    /// Fresh parameters.
    pub fn new(config: &CLIPConfig, init: &Init) -> Self {
        let size = config.vision_config.hidden_size;
        let std = config.initializer_factor / (size.max(1) as f64).sqrt();
        Self {
            vision_model: CLIPVisionModel::new(&config.vision_config, init),
            classifier: new_linear(size, config.general.num_labels(), true, std, init.device()),
            config: config.clone(),
        }
    }

    /// Runs the tower and scores each image by the mean of its patches, `[images, labels]`.
    ///
    /// # Errors
    ///
    /// As [`CLIPVisionModel::forward`], and when the labels do not fit.
    pub fn forward(
        &self,
        inputs: impl Into<PixelInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<ImageClassifierOutput, ForwardError> {
        let mut inputs = inputs.into();
        let labels = inputs.labels.take();
        let [request] = self.requests(kwargs)?;
        let mut base = self.vision_model.forward(inputs, &request)?;
        let [_, positions, _] = base.last_hidden_state.dims();
        let patches = base.last_hidden_state.clone().slice_dim(1, 1..positions);
        let logits: Tensor<2> = linear(&self.classifier, patches.mean_dim(1).squeeze_dim(1));
        let mut output = ImageClassifierOutput::new(logits.clone());
        let problem = self.config.general.problem_type.as_deref();
        output.loss = labels.map(|labels| classification_loss(logits, labels, problem)).transpose()?;
        base.pass_on(&mut output)?;
        Ok(output)
    }
}

composite! {
    CLIPForImageClassification(CLIPConfig at config): PixelInputs => ImageClassifierOutput;
    parts: { vision(""): CLIPVisionModel at vision_model },
    prefix: "clip",
    is_base: false,
    inputs: NamedInputs::PIXELS
}

/// The map from a tower's hidden states to what texts and images are compared by.
pub(super) fn new_projection((inputs, outputs): (usize, usize), factor: f64, init: &Init) -> Linear {
    new_linear(inputs, outputs, false, factor / (inputs.max(1) as f64).sqrt(), init.device())
}
