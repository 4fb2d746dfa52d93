use super::CLIPEncoderConfig;
use crate::config::{ConfigError, GeneralConfig, ImageSize, model_config, product};
use crate::layers::{Activation, PatchGrid};
use serde::{Deserialize, Serialize};

/// The config of CLIP's vision tower. Fields are named as in `config.json`; what is absent has the reference's default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, remote = "Self")]
pub struct CLIPVisionConfig {
    /// The size of a hidden state.
    pub hidden_size: usize,
    /// The size inside the feed-forward block.
    pub intermediate_size: usize,
    /// The size of what texts and images are compared by.
    pub projection_dim: usize,
    /// The number of layers.
    pub num_hidden_layers: usize,
    /// The number of heads.
    pub num_attention_heads: usize,
    /// The number of channels of an image.
    pub num_channels: usize,
    /// The size of an image.
    pub image_size: ImageSize,
    /// The size of a patch.
    pub patch_size: ImageSize,
    /// The activation of the feed-forward block.
    pub hidden_act: Activation,
    /// What the norms add to the variance.
    pub layer_norm_eps: f64,
    /// The share of attention weights that the reference drops in training; not used here.
    pub attention_dropout: f64,
    /// The standard deviation of fresh weights.
    pub initializer_range: f64,
    /// What the standard deviations of fresh weights are multiplied by.
    pub initializer_factor: f64,
    /// What is not about the architecture, and everything else.
    #[serde(flatten)]
    pub general: GeneralConfig,
}

impl Default for CLIPVisionConfig {
    fn default() -> Self {
        Self {
            hidden_size: 768,
            intermediate_size: 3072,
            projection_dim: 512,
            num_hidden_layers: 12,
            num_attention_heads: 12,
            num_channels: 3,
            image_size: ImageSize::Square(224),
            patch_size: ImageSize::Square(32),
            hidden_act: Activation::QuickGelu,
            layer_norm_eps: 1e-5,
            attention_dropout: 0.0,
            initializer_range: 0.02,
            initializer_factor: 1.0,
            general: GeneralConfig::new(Self::MODEL_TYPE),
        }
    }
}

impl CLIPVisionConfig {
    /// How images are cut into patches.
    pub fn grid(&self) -> PatchGrid {
        PatchGrid { channels: self.num_channels, image: self.image_size.pair(), patch: self.patch_size.pair() }
    }

    fn check(&self) -> Result<(), ConfigError> {
        let grid = self.grid();
        grid.check()?;
        let [height, width] = grid.patch;
        let patch = product(&[grid.channels, height, width]);
        let rest = patch.saturating_add(grid.patches() as u64).saturating_mul(self.hidden_size as u64);
        CLIPEncoderConfig::from(self).check(&self.general, &[("projection_dim", self.projection_dim)], rest)
    }
}

model_config!(CLIPVisionConfig, "clip_vision_model", use_cache: |_config| None, nested_in: { "clip" => "vision_config" });
