use crate::auto::{Arguments, InputError, NamedArguments};
use crate::inputs::{PixelInputs, TextInputs};
use crate::models::FeatureLayers;

/// What LLaVA's `forward` is given. Texts alone turn into it.
#[derive(Clone, Debug)]
pub struct LlavaInputs {
    /// The texts, with one image token for each feature.
    pub text: TextInputs,
    /// The images, in the order of their tokens; none: only texts are read.
    pub image: Option<PixelInputs>,
    /// Which hidden states of the tower become features; none: as the config says.
    pub vision_feature_layer: Option<FeatureLayers>,
    /// Which of its positions do, `default` or `full`; none: as the config says.
    pub vision_feature_select_strategy: Option<String>,
}

impl LlavaInputs {
    /// Texts and images.
    pub fn new(text: impl Into<TextInputs>, image: impl Into<PixelInputs>) -> Self {
        Self { image: Some(image.into()), ..Self::from(text.into()) }
    }

    /// Makes features of other hidden states of the tower than the config says.
    pub fn vision_feature_layer(mut self, layers: impl Into<FeatureLayers>) -> Self {
        self.vision_feature_layer = Some(layers.into());
        self
    }

    /// Makes features of other positions of the tower than the config says.
    pub fn vision_feature_select_strategy(mut self, strategy: impl Into<String>) -> Self {
        self.vision_feature_select_strategy = Some(strategy.into());
        self
    }
}

impl<T: Into<TextInputs>> From<T> for LlavaInputs {
    fn from(text: T) -> Self {
        Self { text: text.into(), image: None, vision_feature_layer: None, vision_feature_select_strategy: None }
    }
}

impl LlavaInputs {
    /// The names of the arguments of a model without a head.
    pub(super) const NAMES_BASE: &'static [&'static str] =
        &["input_ids", "attention_mask", "position_ids", "inputs_embeds", "pixel_values"];
    /// Those of one with a head.
    pub(super) const NAMES: &'static [&'static str] =
        &["input_ids", "attention_mask", "position_ids", "inputs_embeds", "pixel_values", "labels"];
}

impl NamedArguments for LlavaInputs {
    fn from_named(arguments: &Arguments<'_>) -> Result<Self, InputError> {
        let image = arguments.floats("pixel_values", "[batch, channels, height, width]")?;
        Ok(Self { image: image.map(PixelInputs::new), ..Self::from(TextInputs::from_named(arguments)?) })
    }
}
