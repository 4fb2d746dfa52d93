use super::{ViTConfig, ViTModel, ViTParts};
use crate::auto::NamedInputs;
use crate::error::ForwardError;
use crate::inputs::PixelInputs;
use crate::layers::{classification_loss, first_of, linear, new_linear};
use crate::models::model_head;
use crate::outputs::ImageClassifierOutput;
use burn::module::Module;
use burn::nn::Linear;
use patching_core::prelude::*;

/// ViT as a classifier of images.
#[derive(Module, Debug)]
pub struct ViTForImageClassification {
    /// The base model, without a pooler.
    pub vit: ViTModel,
    /// `[hidden, labels]`
    pub classifier: Linear,
}

impl ViTForImageClassification {
    /// Fresh parameters.
    pub fn new(config: &ViTConfig, init: &Init) -> Self {
        let (size, labels) = (config.hidden_size, config.general.num_labels());
        Self {
            vit: ViTModel::with_parts(config, ViTParts { pooler: false, mask_token: false }, init),
            classifier: new_linear(size, labels, true, config.initializer_range, init.device()),
        }
    }

    /// Runs the model and scores each image by the token that stands for it, `[images, labels]`.
    ///
    /// # Errors
    ///
    /// As [`ViTModel::forward`], and when the labels do not fit.
    pub fn forward(
        &self,
        inputs: impl Into<PixelInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<ImageClassifierOutput, ForwardError> {
        let mut inputs = inputs.into();
        let labels = inputs.labels.take();
        let mut base = self.vit.forward(inputs, kwargs)?;
        let logits = linear(&self.classifier, first_of(base.last_hidden_state.clone()));
        let mut output = ImageClassifierOutput::new(logits.clone());
        let problem = self.config().general.problem_type.as_deref();
        output.loss = labels.map(|labels| classification_loss(logits, labels, problem)).transpose()?;
        base.pass_on(&mut output)?;
        Ok(output)
    }
}

model_head! {
    ViTForImageClassification { vit: ViTModel }(ViTConfig): PixelInputs => ImageClassifierOutput;
    prefix: "vit",
    inputs: NamedInputs::PIXELS
}
