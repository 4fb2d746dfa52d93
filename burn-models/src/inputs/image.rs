use super::{Labels, TextInputs};
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
