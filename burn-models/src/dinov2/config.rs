use crate::config::{ConfigError, GeneralConfig, ImageSize, StackSizes, model_config, product, validate_stack};
use crate::layers::{Activation, PatchGrid};
use serde::{Deserialize, Serialize};

/// The `config.json` of a DINOv2 model. Fields are named as there; what is absent has the reference's default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, remote = "Self")]
pub struct Dinov2Config {
    /// The size of a hidden state.
    pub hidden_size: usize,
    /// The number of layers.
    pub num_hidden_layers: usize,
    /// The number of heads.
    pub num_attention_heads: usize,
    /// The size of a head; absent: `hidden_size / num_attention_heads`, rounded down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head_dim: Option<usize>,
    /// How many times as large as a hidden state it is inside the feed-forward block.
    pub mlp_ratio: usize,
    /// The activation of the feed-forward block; one with a gate has `silu`.
    pub hidden_act: Activation,
    /// The share of hidden values that the reference drops in training; not used here.
    pub hidden_dropout_prob: f64,
    /// The share of attention weights that the reference drops in training; not used here.
    pub attention_probs_dropout_prob: f64,
    /// The standard deviation of fresh weights.
    pub initializer_range: f64,
    /// What the norms add to the variance.
    pub layer_norm_eps: f64,
    /// The size of the images that there are positions for.
    pub image_size: ImageSize,
    /// The size of a patch.
    pub patch_size: ImageSize,
    /// The number of channels of an image.
    pub num_channels: usize,
    /// Whether the projections to queries, keys and values have biases.
    pub qkv_bias: bool,
    /// By what fresh layers scale what they add.
    pub layerscale_value: f64,
    /// How often the reference leaves out what a layer adds in training; if positive, layers have a class for it.
    pub drop_path_rate: f64,
    /// Whether the feed-forward block has a gate.
    pub use_swiglu_ffn: bool,
    /// Whether the reference norms the feature maps of a backbone; not used here.
    pub apply_layernorm: bool,
    /// Whether the reference gives the feature maps of a backbone as images; not used here.
    pub reshape_hidden_states: bool,
    /// Whether there is something that stands for a hidden patch.
    pub use_mask_token: bool,
    /// What is not about the architecture, and everything else.
    #[serde(flatten)]
    pub general: GeneralConfig,
}

impl Default for Dinov2Config {
    fn default() -> Self {
        Self {
            hidden_size: 768,
            num_hidden_layers: 12,
            num_attention_heads: 12,
            head_dim: None,
            mlp_ratio: 4,
            hidden_act: Activation::Gelu,
            hidden_dropout_prob: 0.0,
            attention_probs_dropout_prob: 0.0,
            initializer_range: 0.02,
            layer_norm_eps: 1e-6,
            image_size: ImageSize::Square(224),
            patch_size: ImageSize::Square(14),
            num_channels: 3,
            qkv_bias: true,
            layerscale_value: 1.0,
            drop_path_rate: 0.0,
            use_swiglu_ffn: false,
            apply_layernorm: true,
            reshape_hidden_states: true,
            use_mask_token: true,
            general: GeneralConfig::new(Self::MODEL_TYPE),
        }
    }
}

impl Dinov2Config {
    /// How images are cut into patches.
    pub fn grid(&self) -> PatchGrid {
        PatchGrid { channels: self.num_channels, image: self.image_size.pair(), patch: self.patch_size.pair() }
    }

    /// The size of a head.
    pub fn head_dim(&self) -> usize {
        self.head_dim.unwrap_or_else(|| self.hidden_size / self.num_attention_heads.max(1))
    }

    /// The size inside the feed-forward block: with a gate two thirds of that without, up to a multiple of 8.
    pub fn intermediate_size(&self) -> usize {
        let size = self.hidden_size.saturating_mul(self.mlp_ratio);
        match self.use_swiglu_ffn {
            true => (size.saturating_mul(2) / 3).div_ceil(8) * 8,
            false => size,
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        let grid = self.grid();
        grid.check()?;
        let (hidden, [height, width]) = (self.hidden_size, grid.patch);
        let attention = product(&[4, hidden, self.num_attention_heads, self.head_dim()]);
        let layer = attention.saturating_add(product(&[3, hidden, self.intermediate_size()]));
        let width = product(&[grid.channels, height, width]).saturating_add(grid.patches() as u64);
        validate_stack(
            &self.general,
            &StackSizes {
                sizes: &[
                    ("hidden_size", hidden),
                    ("mlp_ratio", self.mlp_ratio),
                    ("num_attention_heads", self.num_attention_heads),
                    ("head_dim", self.head_dim()),
                ],
                layers: ("num_hidden_layers", self.num_hidden_layers),
                numbers: &[("layer_norm_eps", self.layer_norm_eps), ("initializer_range", self.initializer_range)],
                keys: &["hidden_states", "attentions"],
                parameters: [layer, width.saturating_mul(hidden as u64)],
            },
        )
    }
}

model_config!(Dinov2Config, "dinov2", use_cache: |_config| None);
