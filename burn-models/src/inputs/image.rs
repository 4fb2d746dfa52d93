use super::{Labels, TextInputs};
use crate::config::GeneralConfig;
use crate::error::ForwardError;
use burn::tensor::{Int, Tensor};

/// What a vision model's `forward` is given. Pixels alone turn into it.
#[derive(Clone, Debug)]
pub struct PixelInputs {
    /// `[batch, channels, height, width]`, normalised as the model was trained.
    pub pixel_values: Tensor<4>,
    /// Whether the embeddings of positions are stretched to images of another size than the model was trained on;
    /// without it such images are an error.
    pub interpolate_pos_encoding: bool,
    /// `[batch, patches]`, not zero where a patch is hidden from a model that has an embedding for that.
    pub bool_masked_pos: Option<Tensor<2, Int>>,
    /// The expected answers, for a loss.
    pub labels: Option<Labels>,
}

impl PixelInputs {
    /// Images, `[batch, channels, height, width]`.
    pub fn new(pixel_values: Tensor<4>) -> Self {
        Self { pixel_values, interpolate_pos_encoding: false, bool_masked_pos: None, labels: None }
    }

    /// Takes images of another size than the model was trained on.
    pub fn interpolate_pos_encoding(mut self, on: bool) -> Self {
        self.interpolate_pos_encoding = on;
        self
    }

    /// Hides patches, `[batch, patches]`.
    pub fn bool_masked_pos(mut self, hidden: impl Into<Option<Tensor<2, Int>>>) -> Self {
        self.bool_masked_pos = hidden.into();
        self
    }

    /// Asks for a loss.
    pub fn labels(mut self, labels: impl Into<Labels>) -> Self {
        self.labels = Some(labels.into());
        self
    }

    /// For a model that computes no loss.
    pub(crate) fn refuse_labels(&self, general: &GeneralConfig) -> Result<(), ForwardError> {
        refused("labels", self.labels.is_some(), "", general)
    }

    /// For a model without an embedding for hidden patches.
    pub(crate) fn refuse_masks(&self, general: &GeneralConfig) -> Result<(), ForwardError> {
        refused("bool_masked_pos", self.bool_masked_pos.is_some(), ": it has no embedding for hidden patches", general)
    }

    /// Which of the `patches` patches of each image are hidden, `[batch, patches]`, if any are; for a model that has an
    /// embedding for them if `can_hide`.
    pub(crate) fn hidden_patches(
        &self,
        patches: usize,
        can_hide: bool,
        general: &GeneralConfig,
    ) -> Result<Option<Tensor<2, Int>>, ForwardError> {
        if !can_hide {
            self.refuse_masks(general)?;
        }
        let [batch, ..] = self.pixel_values.dims();
        match &self.bool_masked_pos {
            Some(hidden) if hidden.dims() != [batch, patches] => Err(ForwardError::Shape {
                name: "bool_masked_pos",
                found: hidden.dims().to_vec(),
                expected: format!("[{batch}, {patches}]: batch, and the patches of an image"),
            }),
            hidden => Ok(hidden.clone()),
        }
    }
}

fn refused(
    name: &'static str,
    is_given: bool,
    because: &'static str,
    general: &GeneralConfig,
) -> Result<(), ForwardError> {
    match is_given {
        true => Err(ForwardError::Unused { model: general.model_type.clone(), name, because }),
        false => Ok(()),
    }
}

impl From<Tensor<4>> for PixelInputs {
    fn from(pixel_values: Tensor<4>) -> Self {
        Self::new(pixel_values)
    }
}

/// What a model of texts and images is given.
#[derive(Clone, Debug)]
pub struct TextImageInputs {
    /// The texts.
    pub text: TextInputs,
    /// The images; none where a model can do without.
    pub image: Option<PixelInputs>,
    /// Whether the loss is wanted that pairs each text with the image of the same index.
    pub return_loss: bool,
}

impl TextImageInputs {
    /// Texts and images; there may be more of the one than of the other.
    pub fn new(text: impl Into<TextInputs>, image: impl Into<PixelInputs>) -> Self {
        Self { text: text.into(), image: Some(image.into()), return_loss: false }
    }

    /// Asks for the loss that pairs each text with the image of the same index.
    pub fn return_loss(mut self, on: bool) -> Self {
        self.return_loss = on;
        self
    }
}
