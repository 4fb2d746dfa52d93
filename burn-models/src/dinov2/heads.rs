use super::{Dinov2Config, Dinov2Model};
use crate::auto::NamedInputs;
use crate::error::ForwardError;
use crate::inputs::PixelInputs;
use crate::layers::{classification_loss, first_of, linear, new_linear};
use crate::models::model_head;
use crate::outputs::ImageClassifierOutput;
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// DINOv2 as a classifier of images.
#[derive(Module, Debug)]
pub struct Dinov2ForImageClassification {
    /// The base model.
    pub dinov2: Dinov2Model,
    /// `[2 * hidden, labels]`
    pub classifier: Linear,
}

impl Dinov2ForImageClassification {
    /// Fresh parameters.
    pub fn new(config: &Dinov2Config, init: &Init) -> Self {
        let (size, labels) = (2 * config.hidden_size, config.general.num_labels());
        Self {
            dinov2: Dinov2Model::new(config, init),
            classifier: new_linear(size, labels, true, config.initializer_range, init.device()),
        }
    }

    /// Runs the model and scores each image by what stands for it and the mean of its patches, `[images, labels]`.
    ///
    /// # Errors
    ///
    /// As [`Dinov2Model::forward`], and when the labels do not fit.
    pub fn forward(
        &self,
        inputs: impl Into<PixelInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<ImageClassifierOutput, ForwardError> {
        let mut inputs = inputs.into();
        let labels = inputs.labels.take();
        let mut base = self.dinov2.forward(inputs, kwargs)?;
        let [_, positions, _] = base.last_hidden_state.dims();
        let whole = first_of(base.last_hidden_state.clone());
        let patches = base.last_hidden_state.clone().slice_dim(1, 1..positions).mean_dim(1).squeeze_dim(1);
        let logits = linear(&self.classifier, Tensor::cat(vec![whole, patches], 1));
        let mut output = ImageClassifierOutput::new(logits.clone());
        let problem = self.config().general.problem_type.as_deref();
        output.loss = labels.map(|labels| classification_loss(logits, labels, problem)).transpose()?;
        base.pass_on(&mut output)?;
        Ok(output)
    }
}

model_head! {
    Dinov2ForImageClassification { dinov2: Dinov2Model }(Dinov2Config): PixelInputs => ImageClassifierOutput;
    prefix: "dinov2",
    inputs: NamedInputs::PIXELS
}
