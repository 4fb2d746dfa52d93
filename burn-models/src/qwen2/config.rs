use crate::config::{
    ConfigError, GeneralConfig, LayerType, RopeParameters, TokenIds, decoder_config, layered_window,
    validate_layer_types,
};
use crate::layers::Activation;
use serde::{Deserialize, Serialize};

/// The `config.json` of a Qwen2 model. Fields are named as there; what is absent has the reference's default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, remote = "Self")]
pub struct Qwen2Config {
    /// The size of the vocabulary.
    pub vocab_size: usize,
    /// The size of a hidden state.
    pub hidden_size: usize,
    /// The size inside the feed-forward block.
    pub intermediate_size: usize,
    /// The number of layers.
    pub num_hidden_layers: usize,
    /// The number of query heads.
    pub num_attention_heads: usize,
    /// The number of key and value heads; absent: as many as query heads.
    pub num_key_value_heads: Option<usize>,
    /// The size of a head; absent: `hidden_size / num_attention_heads`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head_dim: Option<usize>,
    /// The activation of the feed-forward block.
    pub hidden_act: Activation,
    /// The context that the model was trained on.
    pub max_position_embeddings: usize,
    /// The standard deviation of fresh weights.
    pub initializer_range: f64,
    /// What the norms add to the variance.
    pub rms_norm_eps: f64,
    /// Whether keys and values are kept unless a call says otherwise.
    pub use_cache: bool,
    /// The padding token.
    pub pad_token_id: Option<i64>,
    /// The token that begins a text.
    pub bos_token_id: Option<i64>,
    /// The tokens that end a text.
    pub eos_token_id: Option<TokenIds>,
    /// Whether the language model head uses the embedding's weight.
    pub tie_word_embeddings: bool,
    /// How positions turn queries and keys.
    pub rope_parameters: RopeParameters,
    /// The share of attention weights that the reference drops in training; not used here.
    pub attention_dropout: f64,
    /// Whether layers from `max_window_layers` on look back a fixed number of tokens.
    pub use_sliding_window: bool,
    /// How many tokens back those layers look, themselves included.
    pub sliding_window: Option<usize>,
    /// How many of the first layers look back to the first token.
    pub max_window_layers: usize,
    /// How far each layer looks back; absent: as the three fields above say.
    pub layer_types: Option<Vec<LayerType>>,
    /// What is not about the architecture, and everything else.
    #[serde(flatten)]
    pub general: GeneralConfig,
}

impl Default for Qwen2Config {
    fn default() -> Self {
        Self {
            vocab_size: 151_936,
            hidden_size: 4096,
            intermediate_size: 22_016,
            num_hidden_layers: 32,
            num_attention_heads: 32,
            num_key_value_heads: Some(32),
            head_dim: None,
            hidden_act: Activation::Silu,
            max_position_embeddings: 32_768,
            initializer_range: 0.02,
            rms_norm_eps: 1e-6,
            use_cache: true,
            pad_token_id: None,
            bos_token_id: None,
            eos_token_id: None,
            tie_word_embeddings: false,
            rope_parameters: RopeParameters::default(),
            attention_dropout: 0.0,
            use_sliding_window: false,
            sliding_window: Some(4096),
            max_window_layers: 28,
            layer_types: None,
            general: GeneralConfig::new(Self::MODEL_TYPE),
        }
    }
}

impl Qwen2Config {
    /// The window of the layers that have one.
    fn window(&self) -> Option<usize> {
        self.sliding_window.filter(|_| self.use_sliding_window)
    }

    fn validate_family(&self) -> Result<(), ConfigError> {
        validate_layer_types(self.layer_types.as_deref(), self.num_hidden_layers, self.window())?;
        if self.head_dim.is_some() {
            return Ok(());
        }
        crate::config::multiple_of(("hidden_size", self.hidden_size), ("num_attention_heads", self.num_attention_heads))
    }
}

decoder_config!(Qwen2Config, "qwen2", {
    fn sliding_window(&self, layer: usize) -> Option<usize> {
        layered_window(self.window(), self.max_window_layers, self.layer_types.as_deref(), layer)
    }
    fn head_dim(&self) -> usize {
        self.head_dim.unwrap_or_else(|| self.hidden_size / self.num_attention_heads.max(1))
    }
});
