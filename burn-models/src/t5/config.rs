use super::T5FeedForwardProj;
use crate::config::{
    ConfigError, GeneralConfig, StackSizes, TokenIds, model_config, product, take_other_names, validate_stack,
};
use crate::layers::{Activation, RelativeBuckets};
use serde::{Deserialize, Serialize};

/// The `config.json` of a T5 model. Fields are named as there; what is absent has the reference's default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, remote = "Self")]
pub struct T5Config {
    /// The size of the vocabulary.
    pub vocab_size: usize,
    /// The size of a hidden state.
    pub d_model: usize,
    /// The size of a head.
    pub d_kv: usize,
    /// The size inside the feed-forward block.
    pub d_ff: usize,
    /// The number of the encoder's layers.
    pub num_layers: usize,
    /// The number of the decoder's layers; absent: as many as the encoder's.
    pub num_decoder_layers: Option<usize>,
    /// The number of heads; together they need not be as wide as a hidden state.
    pub num_heads: usize,
    /// Into how many buckets distances of positions fall.
    pub relative_attention_num_buckets: usize,
    /// From which distance on all fall into the last.
    pub relative_attention_max_distance: usize,
    /// The share of values that the reference drops in training; not used here.
    pub dropout_rate: f64,
    /// What the norms add to the variance.
    pub layer_norm_epsilon: f64,
    /// What the standard deviations of fresh weights are multiplied by.
    pub initializer_factor: f64,
    /// The feed-forward block: an activation (`relu`), or one with a gate (`gated-gelu`).
    pub feed_forward_proj: T5FeedForwardProj,
    /// The activation; absent: the one that `feed_forward_proj` names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dense_act_fn: Option<Activation>,
    /// Whether there is a gate; absent: as `feed_forward_proj` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_gated_act: Option<bool>,
    /// Whether hidden states are divided by the root of their size before the language model head; absent: as
    /// `tie_word_embeddings` says, which older checkpoints mean by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_decoder_outputs: Option<bool>,
    /// What older checkpoints mean by it: see `scale_decoder_outputs`. Whether the head shares the embedding is seen
    /// from the checkpoint: it does unless that holds another weight for it.
    pub tie_word_embeddings: bool,
    /// Whether the model is an encoder and a decoder.
    pub is_encoder_decoder: bool,
    /// Whether a stack of layers is a decoder; a model of both decides it for each.
    pub is_decoder: bool,
    /// Whether a decoder keeps keys and values unless a call says otherwise.
    pub use_cache: bool,
    /// The padding token.
    pub pad_token_id: Option<i64>,
    /// The tokens that end a text.
    pub eos_token_id: Option<TokenIds>,
    /// The token that the decoder begins with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decoder_start_token_id: Option<i64>,
    /// The share of values that the reference's classifiers drop in training; not used here.
    pub classifier_dropout: f64,
    /// What does not share the embedding. Not a matter of `config.json`: loading finds out.
    #[serde(skip)]
    pub untied: T5Untied,
    /// What is not about the architecture, and everything else.
    #[serde(flatten)]
    pub general: GeneralConfig,
}

/// Which of those that share T5's embedding have a weight of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct T5Untied {
    /// The encoder's embedding.
    pub encoder: bool,
    /// The decoder's embedding.
    pub decoder: bool,
    /// The language model head.
    pub lm_head: bool,
}

impl Default for T5Config {
    fn default() -> Self {
        Self {
            vocab_size: 32_128,
            d_model: 512,
            d_kv: 64,
            d_ff: 2048,
            num_layers: 6,
            num_decoder_layers: None,
            num_heads: 8,
            relative_attention_num_buckets: 32,
            relative_attention_max_distance: 128,
            dropout_rate: 0.1,
            layer_norm_epsilon: 1e-6,
            initializer_factor: 1.0,
            feed_forward_proj: T5FeedForwardProj::default(),
            dense_act_fn: None,
            is_gated_act: None,
            scale_decoder_outputs: None,
            tie_word_embeddings: true,
            is_encoder_decoder: true,
            is_decoder: false,
            use_cache: true,
            pad_token_id: Some(0),
            eos_token_id: Some(TokenIds::One(1)),
            decoder_start_token_id: None,
            classifier_dropout: 0.0,
            untied: T5Untied::default(),
            general: GeneralConfig::new(Self::MODEL_TYPE),
        }
    }
}

impl T5Config {
    /// The config of the encoder of a model with a decoder.
    pub fn of_encoder(&self) -> Self {
        Self { is_decoder: false, use_cache: false, ..self.clone() }
    }

    /// The config of the decoder of a model with an encoder.
    pub fn of_decoder(&self) -> Self {
        Self { is_decoder: true, num_layers: self.decoder_layers(), ..self.clone() }
    }

    /// The number of the decoder's layers.
    pub fn decoder_layers(&self) -> usize {
        self.num_decoder_layers.unwrap_or(self.num_layers)
    }

    /// Whether the feed-forward block has a gate.
    pub fn is_gated(&self) -> bool {
        self.is_gated_act.unwrap_or(self.feed_forward_proj.is_gated)
    }

    /// The activation of the feed-forward block.
    pub fn activation(&self) -> Activation {
        self.dense_act_fn.unwrap_or_else(|| self.feed_forward_proj.activation())
    }

    /// Whether hidden states are divided by the root of their size before the language model head.
    pub fn scales_outputs(&self) -> bool {
        self.scale_decoder_outputs.unwrap_or(self.tie_word_embeddings)
    }

    /// The buckets of a stack's relative positions: a decoder has them for what comes before a query only.
    pub(crate) fn buckets(&self) -> RelativeBuckets {
        RelativeBuckets {
            bidirectional: !self.is_decoder,
            num_buckets: self.relative_attention_num_buckets,
            max_distance: self.relative_attention_max_distance,
        }
    }

    /// The standard deviation of fresh weights that sum over `inputs` values.
    pub(crate) fn std_of(&self, inputs: usize) -> f64 {
        self.initializer_factor * (inputs as f64).powf(-0.5)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let inner = self.num_heads.saturating_mul(self.d_kv);
        let attention = product(&[8, inner, self.d_model]);
        let layer = attention.saturating_add(product(&[6, self.d_ff, self.d_model]));
        let layers = [("num_layers", self.num_layers), ("num_decoder_layers", self.decoder_layers())];
        for layers in layers {
            validate_stack(
                &self.general,
                &StackSizes {
                    sizes: &[
                        ("vocab_size", self.vocab_size),
                        ("d_model", self.d_model),
                        ("d_kv", self.d_kv),
                        ("d_ff", self.d_ff),
                        ("num_heads", self.num_heads),
                    ],
                    layers,
                    numbers: &[
                        ("layer_norm_epsilon", self.layer_norm_epsilon),
                        ("initializer_factor", self.initializer_factor),
                    ],
                    keys: &["hidden_states", "attentions", "cross_attentions"],
                    parameters: [layer, product(&[4, self.vocab_size, self.d_model])],
                },
            )?;
        }
        self.check_buckets()
    }

    fn check_buckets(&self) -> Result<(), ConfigError> {
        const MOST: usize = 1 << 20;
        let (buckets, distance) = (self.relative_attention_num_buckets, self.relative_attention_max_distance);
        if !(4..=MOST).contains(&buckets) {
            let expected = format!("4 to {MOST}: two for each direction");
            return Err(ConfigError::out_of_range("relative_attention_num_buckets", buckets, expected));
        }
        if distance <= buckets / 2 {
            let expected = format!("more than half of `relative_attention_num_buckets`, which is {buckets}");
            return Err(ConfigError::out_of_range("relative_attention_max_distance", distance, expected));
        }
        Ok(())
    }
}

/// What other families call the same, and configs may.
const OTHER_NAMES: [(&str, &str); 4] = [
    ("hidden_size", "d_model"),
    ("num_attention_heads", "num_heads"),
    ("num_hidden_layers", "num_layers"),
    ("head_dim", "d_kv"),
];

model_config!(
    T5Config,
    "t5",
    use_cache: |config| Some(config.use_cache),
    adapt: |fields| take_other_names(fields, &OTHER_NAMES)
);
