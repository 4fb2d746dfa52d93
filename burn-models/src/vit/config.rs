use crate::config::{ConfigError, GeneralConfig, ImageSize, StackSizes, model_config, product, validate_stack};
use crate::layers::{Activation, PatchGrid};
use serde::{Deserialize, Serialize};

/// The `config.json` of a ViT model. Fields are named as there; what is absent has the reference's default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, remote = "Self")]
pub struct ViTConfig {
    /// The size of a hidden state.
    pub hidden_size: usize,
    /// The number of layers.
    pub num_hidden_layers: usize,
    /// The number of heads.
    pub num_attention_heads: usize,
    /// The size of a head; absent: `hidden_size / num_attention_heads`, rounded down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head_dim: Option<usize>,
    /// The size inside the feed-forward block.
    pub intermediate_size: usize,
    /// The activation of the feed-forward block.
    pub hidden_act: Activation,
    /// The share of hidden values that the reference drops in training; not used here.
    pub hidden_dropout_prob: f64,
    /// The share of attention weights that the reference drops in training; not used here.
    pub attention_probs_dropout_prob: f64,
    /// The standard deviation of fresh weights.
    pub initializer_range: f64,
    /// What the norms add to the variance.
    pub layer_norm_eps: f64,
    /// The size of an image.
    pub image_size: ImageSize,
    /// The size of a patch.
    pub patch_size: ImageSize,
    /// The number of channels of an image.
    pub num_channels: usize,
    /// Whether the projections to queries, keys and values have biases.
    pub qkv_bias: bool,
    /// How many pixels high and wide what the decoder of hidden patches makes of each is.
    pub encoder_stride: usize,
    /// The size of what stands for the whole image; absent or 0: `hidden_size`.
    pub pooler_output_size: Option<usize>,
    /// The activation of what stands for the whole image.
    pub pooler_act: Activation,
    /// What is not about the architecture, and everything else.
    #[serde(flatten)]
    pub general: GeneralConfig,
}

impl Default for ViTConfig {
    fn default() -> Self {
        Self {
            hidden_size: 768,
            num_hidden_layers: 12,
            num_attention_heads: 12,
            head_dim: None,
            intermediate_size: 3072,
            hidden_act: Activation::Gelu,
            hidden_dropout_prob: 0.0,
            attention_probs_dropout_prob: 0.0,
            initializer_range: 0.02,
            layer_norm_eps: 1e-12,
            image_size: ImageSize::Square(224),
            patch_size: ImageSize::Square(16),
            num_channels: 3,
            qkv_bias: true,
            encoder_stride: 16,
            pooler_output_size: None,
            pooler_act: Activation::Tanh,
            general: GeneralConfig::new(Self::MODEL_TYPE),
        }
    }
}

impl ViTConfig {
    /// How images are cut into patches.
    pub fn grid(&self) -> PatchGrid {
        PatchGrid { channels: self.num_channels, image: self.image_size.pair(), patch: self.patch_size.pair() }
    }

    /// The size of a head.
    pub fn head_dim(&self) -> usize {
        self.head_dim.unwrap_or_else(|| self.hidden_size / self.num_attention_heads.max(1))
    }

    /// The size of what stands for the whole image.
    pub fn pooler_output_size(&self) -> usize {
        self.pooler_output_size.filter(|size| *size > 0).unwrap_or(self.hidden_size)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let grid = self.grid();
        grid.check()?;
        let (hidden, [height, width]) = (self.hidden_size, grid.patch);
        let attention = product(&[4, hidden, self.num_attention_heads, self.head_dim()]);
        let layer = attention.saturating_add(product(&[2, hidden, self.intermediate_size]));
        let patch = product(&[grid.channels, height, width]);
        let decoder = product(&[grid.channels, self.encoder_stride, self.encoder_stride]);
        let widths = [patch, decoder, grid.patches() as u64, self.pooler_output_size() as u64];
        let width = widths.into_iter().fold(0, u64::saturating_add);
        validate_stack(
            &self.general,
            &StackSizes {
                sizes: &[
                    ("hidden_size", hidden),
                    ("intermediate_size", self.intermediate_size),
                    ("num_attention_heads", self.num_attention_heads),
                    ("head_dim", self.head_dim()),
                    ("encoder_stride", self.encoder_stride),
                    ("pooler_output_size", self.pooler_output_size()),
                ],
                layers: ("num_hidden_layers", self.num_hidden_layers),
                numbers: &[("layer_norm_eps", self.layer_norm_eps), ("initializer_range", self.initializer_range)],
                keys: &["hidden_states", "attentions"],
                parameters: [layer, width.saturating_mul(hidden as u64)],
            },
        )
    }
}

model_config!(ViTConfig, "vit", use_cache: |_config| None);
