use crate::config::{
    ConfigError, GeneralConfig, StackSizes, TokenIds, model_config, multiple_of, product, take_other_names,
    validate_stack,
};
use crate::layers::{Activation, Stack};
use serde::{Deserialize, Serialize};

/// The `config.json` of a GPT-2 model. Fields are named as there; what is absent has the reference's default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, remote = "Self")]
pub struct GPT2Config {
    /// The size of the vocabulary.
    pub vocab_size: usize,
    /// How many positions have embeddings.
    pub n_positions: usize,
    /// The size of a hidden state.
    pub n_embd: usize,
    /// The number of layers.
    pub n_layer: usize,
    /// The number of attention heads.
    pub n_head: usize,
    /// The size inside the feed-forward block; absent: four times `n_embd`.
    pub n_inner: Option<usize>,
    /// The activation of the feed-forward block.
    pub activation_function: Activation,
    /// The share of what blocks give that the reference drops in training; not used here.
    pub resid_pdrop: f64,
    /// The share of embeddings that the reference drops in training; not used here.
    pub embd_pdrop: f64,
    /// The share of attention weights that the reference drops in training; not used here.
    pub attn_pdrop: f64,
    /// What the norms add to the variance.
    pub layer_norm_epsilon: f64,
    /// The standard deviation of fresh weights.
    pub initializer_range: f64,
    /// Whether attention scores are divided by the root of the size of a head.
    pub scale_attn_weights: bool,
    /// Whether attention scores are also divided by the number of the layer, counted from 1.
    pub scale_attn_by_inverse_layer_idx: bool,
    /// Whether attention scores are computed in f32, whatever the model computes in.
    pub reorder_and_upcast_attn: bool,
    /// Whether each layer also looks at what an encoder gave.
    pub add_cross_attention: bool,
    /// Whether keys and values are kept unless a call says otherwise.
    pub use_cache: bool,
    /// The token that begins a text.
    pub bos_token_id: Option<i64>,
    /// The tokens that end a text.
    pub eos_token_id: Option<TokenIds>,
    /// The padding token.
    pub pad_token_id: Option<i64>,
    /// Whether the language model head uses the embedding's weight.
    pub tie_word_embeddings: bool,
    /// What is not about the architecture, and everything else.
    #[serde(flatten)]
    pub general: GeneralConfig,
}

impl Default for GPT2Config {
    fn default() -> Self {
        Self {
            vocab_size: 50_257,
            n_positions: 1024,
            n_embd: 768,
            n_layer: 12,
            n_head: 12,
            n_inner: None,
            activation_function: Activation::GeluNew,
            resid_pdrop: 0.1,
            embd_pdrop: 0.1,
            attn_pdrop: 0.1,
            layer_norm_epsilon: 1e-5,
            initializer_range: 0.02,
            scale_attn_weights: true,
            scale_attn_by_inverse_layer_idx: false,
            reorder_and_upcast_attn: false,
            add_cross_attention: false,
            use_cache: true,
            bos_token_id: Some(50_256),
            eos_token_id: Some(TokenIds::One(50_256)),
            pad_token_id: None,
            tie_word_embeddings: true,
            general: GeneralConfig::new(Self::MODEL_TYPE),
        }
    }
}

impl GPT2Config {
    /// The size of an attention head.
    pub fn head_dim(&self) -> usize {
        self.n_embd / self.n_head.max(1)
    }

    /// The size inside the feed-forward block.
    pub fn intermediate_size(&self) -> usize {
        self.n_inner.unwrap_or_else(|| self.n_embd.saturating_mul(4))
    }

    /// The standard deviation of fresh weights that are added to the hidden states: smaller, the more layers add to them.
    pub(crate) fn residual_std(&self) -> f64 {
        self.initializer_range / (2.0 * self.n_layer.max(1) as f64).sqrt()
    }

    /// The shape of the stack of layers.
    pub(crate) fn stack(&self) -> Stack<'_> {
        Stack {
            encoder_size: self.add_cross_attention.then_some(self.n_embd),
            max_positions: Some(self.n_positions),
            packs: true,
            ..Stack::decoder(&self.general, self.n_layer, [self.n_head, self.head_dim()], self.use_cache)
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        let hidden = self.n_embd;
        let attention = if self.add_cross_attention { 8 } else { 4 };
        let layer =
            product(&[attention, hidden, hidden]).saturating_add(product(&[2, hidden, self.intermediate_size()]));
        let tables = product(&[2, self.vocab_size, hidden]).saturating_add(product(&[self.n_positions, hidden]));
        validate_stack(
            &self.general,
            &StackSizes {
                sizes: &[
                    ("vocab_size", self.vocab_size),
                    ("n_positions", self.n_positions),
                    ("n_embd", hidden),
                    ("n_head", self.n_head),
                    ("n_inner", self.intermediate_size()),
                ],
                layers: ("n_layer", self.n_layer),
                numbers: &[
                    ("layer_norm_epsilon", self.layer_norm_epsilon),
                    ("initializer_range", self.initializer_range),
                ],
                keys: &["hidden_states", "attentions", "cross_attentions"],
                parameters: [layer, tables],
            },
        )?;
        multiple_of(("n_embd", hidden), ("n_head", self.n_head))
    }
}

/// What other families call the same, and configs may.
const OTHER_NAMES: [(&str, &str); 4] = [
    ("hidden_size", "n_embd"),
    ("max_position_embeddings", "n_positions"),
    ("num_attention_heads", "n_head"),
    ("num_hidden_layers", "n_layer"),
];

model_config!(
    GPT2Config,
    "gpt2",
    use_cache: |config| Some(config.use_cache),
    adapt: |fields| take_other_names(fields, &OTHER_NAMES)
);
