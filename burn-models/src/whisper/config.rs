use crate::config::{
    ConfigError, GeneralConfig, StackSizes, TokenIds, model_config, multiple_of, product, take_other_names,
    validate_stack,
};
use crate::layers::Activation;
use serde::{Deserialize, Serialize};

/// How many frames of a spectrogram one position of the encoder stands for: the stride of its convolutions.
pub(super) const FRAMES: usize = 2;

/// The `config.json` of a Whisper model. Fields are named as there; what is absent has the reference's default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, remote = "Self")]
pub struct WhisperConfig {
    /// The size of the vocabulary.
    pub vocab_size: usize,
    /// How many bands a frame of a spectrogram has.
    pub num_mel_bins: usize,
    /// The number of layers of the encoder.
    pub encoder_layers: usize,
    /// The number of heads of the encoder.
    pub encoder_attention_heads: usize,
    /// The number of layers of the decoder.
    pub decoder_layers: usize,
    /// The number of heads of the decoder.
    pub decoder_attention_heads: usize,
    /// The size inside the decoder's feed-forward blocks.
    pub decoder_ffn_dim: usize,
    /// The size inside the encoder's feed-forward blocks.
    pub encoder_ffn_dim: usize,
    /// The share of layers that the reference leaves out of the encoder in training; not used here.
    pub encoder_layerdrop: f64,
    /// The share of layers that the reference leaves out of the decoder in training; not used here.
    pub decoder_layerdrop: f64,
    /// The token that the decoder begins with.
    pub decoder_start_token_id: Option<i64>,
    /// Whether keys and values are kept unless a call says otherwise.
    pub use_cache: bool,
    /// Whether there is an encoder; only written.
    pub is_encoder_decoder: bool,
    /// The activation of the feed-forward blocks; the convolutions always have the exact `gelu`.
    pub activation_function: Activation,
    /// The size of a hidden state.
    pub d_model: usize,
    /// The share of values that the reference drops in training; not used here.
    pub dropout: f64,
    /// The share of attention weights that the reference drops in training; not used here.
    pub attention_dropout: f64,
    /// The share of values that the reference drops in feed-forward blocks in training; not used here.
    pub activation_dropout: f64,
    /// The standard deviation of fresh weights.
    pub init_std: f64,
    /// Has no effect, as in the reference.
    pub scale_embedding: bool,
    /// How many positions the encoder has; each stands for two frames.
    pub max_source_positions: usize,
    /// How many positions the decoder has.
    pub max_target_positions: usize,
    /// The padding token.
    pub pad_token_id: Option<i64>,
    /// The token that begins a text.
    pub bos_token_id: Option<i64>,
    /// The tokens that end a text.
    pub eos_token_id: Option<TokenIds>,
    /// Tokens that are never generated; in a checkpoint with a `generation_config.json`, that one counts.
    pub suppress_tokens: Option<Vec<i64>>,
    /// Tokens that no text begins with; in a checkpoint with a `generation_config.json`, that one counts.
    pub begin_suppress_tokens: Option<Vec<i64>>,
    /// Whether a classifier reads a weighted sum of all hidden states.
    pub use_weighted_layer_sum: bool,
    /// The size that a classifier projects to.
    pub classifier_proj_size: usize,
    /// Whether the reference hides parts of spectrograms in training; not done here.
    pub apply_spec_augment: bool,
    /// A setting of that.
    pub mask_time_prob: f64,
    /// A setting of that.
    pub mask_time_length: usize,
    /// A setting of that.
    pub mask_time_min_masks: usize,
    /// A setting of that.
    pub mask_feature_prob: f64,
    /// A setting of that.
    pub mask_feature_length: usize,
    /// A setting of that.
    pub mask_feature_min_masks: usize,
    /// How many positions are smoothed over where tokens get a time; not used here.
    pub median_filter_width: usize,
    /// Whether the language model head uses the embedding's weight.
    pub tie_word_embeddings: bool,
    /// What is not about the architecture, and everything else.
    #[serde(flatten)]
    pub general: GeneralConfig,
}

impl Default for WhisperConfig {
    fn default() -> Self {
        Self {
            vocab_size: 51_865,
            num_mel_bins: 80,
            encoder_layers: 4,
            encoder_attention_heads: 6,
            decoder_layers: 4,
            decoder_attention_heads: 6,
            decoder_ffn_dim: 1536,
            encoder_ffn_dim: 1536,
            encoder_layerdrop: 0.0,
            decoder_layerdrop: 0.0,
            decoder_start_token_id: Some(50_257),
            use_cache: true,
            is_encoder_decoder: true,
            activation_function: Activation::Gelu,
            d_model: 384,
            dropout: 0.0,
            attention_dropout: 0.0,
            activation_dropout: 0.0,
            init_std: 0.02,
            scale_embedding: false,
            max_source_positions: 1500,
            max_target_positions: 448,
            pad_token_id: Some(50_256),
            bos_token_id: Some(50_256),
            eos_token_id: Some(TokenIds::One(50_256)),
            suppress_tokens: None,
            begin_suppress_tokens: Some(vec![220, 50_256]),
            use_weighted_layer_sum: false,
            classifier_proj_size: 256,
            apply_spec_augment: false,
            mask_time_prob: 0.05,
            mask_time_length: 10,
            mask_time_min_masks: 2,
            mask_feature_prob: 0.0,
            mask_feature_length: 10,
            mask_feature_min_masks: 0,
            median_filter_width: 7,
            tie_word_embeddings: true,
            general: GeneralConfig::new(Self::MODEL_TYPE),
        }
    }
}

impl WhisperConfig {
    fn check(&self) -> Result<(), ConfigError> {
        let size = self.d_model;
        for heads in [
            ("encoder_attention_heads", self.encoder_attention_heads),
            ("decoder_attention_heads", self.decoder_attention_heads),
        ] {
            let inside = self.encoder_ffn_dim.max(self.decoder_ffn_dim);
            let attentions = product(&[8, size, size]);
            let embeddings = product(&[self.vocab_size.saturating_mul(2), size]);
            let positions = product(&[self.max_source_positions.saturating_add(self.max_target_positions), size]);
            let layers = ("encoder_layers", self.encoder_layers.max(self.decoder_layers));
            let layers = if self.encoder_layers >= self.decoder_layers { layers } else { ("decoder_layers", layers.1) };
            validate_stack(
                &self.general,
                &StackSizes {
                    sizes: &[
                        ("vocab_size", self.vocab_size),
                        ("num_mel_bins", self.num_mel_bins),
                        ("d_model", size),
                        ("encoder_ffn_dim", self.encoder_ffn_dim),
                        ("decoder_ffn_dim", self.decoder_ffn_dim),
                        ("max_source_positions", self.max_source_positions),
                        ("max_target_positions", self.max_target_positions),
                        ("classifier_proj_size", self.classifier_proj_size),
                        heads,
                    ],
                    layers,
                    numbers: &[("init_std", self.init_std)],
                    keys: &["hidden_states", "attentions", "cross_attentions"],
                    parameters: [
                        product(&[4, inside, size]).saturating_add(attentions.saturating_mul(2)),
                        embeddings.saturating_add(positions),
                    ],
                },
            )?;
            multiple_of(("d_model", size), heads)?;
        }
        if !size.is_multiple_of(2) || size < 4 {
            return Err(ConfigError::out_of_range("d_model", size, "an even number from 4 on, for sine and cosine"));
        }
        Ok(())
    }
}

/// Fields of published configs that stand for others.
const OTHER_NAMES: [(&str, &str); 3] = [
    ("hidden_size", "d_model"),
    ("num_attention_heads", "encoder_attention_heads"),
    ("num_hidden_layers", "encoder_layers"),
];

model_config!(
    WhisperConfig, "whisper",
    use_cache: |config| Some(config.use_cache),
    adapt: |fields| take_other_names(fields, &OTHER_NAMES)
);
