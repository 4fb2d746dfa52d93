use super::CLIPEncoderConfig;
use crate::config::{ConfigError, GeneralConfig, TokenIds, model_config, product};
use crate::layers::Activation;
use serde::{Deserialize, Serialize};

/// The size of what texts and images are compared by where a config does not say.
const DEFAULT_PROJECTION: usize = 512;

/// The config of CLIP's text tower. Fields are named as in `config.json`; what is absent has the reference's default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, remote = "Self")]
pub struct CLIPTextConfig {
    /// The size of the vocabulary.
    pub vocab_size: usize,
    /// The size of a hidden state.
    pub hidden_size: usize,
    /// The size inside the feed-forward block.
    pub intermediate_size: usize,
    /// The size of what texts and images are compared by; absent: 512.
    pub projection_dim: Option<usize>,
    /// The number of layers.
    pub num_hidden_layers: usize,
    /// The number of heads.
    pub num_attention_heads: usize,
    /// How many positions have embeddings.
    pub max_position_embeddings: usize,
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
    /// The padding token.
    pub pad_token_id: Option<i64>,
    /// The token that begins a text.
    pub bos_token_id: Option<i64>,
    /// The tokens that end a text, whose hidden state stands for all of it.
    pub eos_token_id: Option<TokenIds>,
    /// What is not about the architecture, and everything else.
    #[serde(flatten)]
    pub general: GeneralConfig,
}

impl Default for CLIPTextConfig {
    fn default() -> Self {
        Self {
            vocab_size: 49_408,
            hidden_size: 512,
            intermediate_size: 2048,
            projection_dim: Some(DEFAULT_PROJECTION),
            num_hidden_layers: 12,
            num_attention_heads: 8,
            max_position_embeddings: 77,
            hidden_act: Activation::QuickGelu,
            layer_norm_eps: 1e-5,
            attention_dropout: 0.0,
            initializer_range: 0.02,
            initializer_factor: 1.0,
            pad_token_id: Some(1),
            bos_token_id: Some(49_406),
            eos_token_id: Some(TokenIds::One(49_407)),
            general: GeneralConfig::new(Self::MODEL_TYPE),
        }
    }
}

impl CLIPTextConfig {
    /// The size of what texts and images are compared by.
    pub fn projection_dim(&self) -> usize {
        self.projection_dim.unwrap_or(DEFAULT_PROJECTION)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let (hidden, positions) = (self.hidden_size, self.max_position_embeddings);
        let sizes = [
            ("vocab_size", self.vocab_size),
            ("max_position_embeddings", positions),
            ("projection_dim", self.projection_dim()),
        ];
        let rest = product(&[hidden, self.vocab_size.saturating_add(positions)]);
        CLIPEncoderConfig::from(self).check(&self.general, &sizes, rest)?;
        if self.eos_token_id.as_ref().and_then(TokenIds::first).is_none() {
            let because = "the hidden state that stands for a text".to_owned();
            return Err(ConfigError::Missing { field: "eos_token_id", because });
        }
        Ok(())
    }
}

model_config!(CLIPTextConfig, "clip_text_model", use_cache: |_config| None, nested_in: { "clip" => "text_config" });
