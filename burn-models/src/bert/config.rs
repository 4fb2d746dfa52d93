use crate::config::{
    ConfigError, GeneralConfig, StackSizes, TokenIds, model_config, multiple_of, product, validate_stack,
};
use crate::layers::{Activation, Stack};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The `config.json` of a BERT model. Fields are named as there; what is absent has the reference's default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, remote = "Self")]
pub struct BertConfig {
    /// The size of the vocabulary.
    pub vocab_size: usize,
    /// The size of a hidden state.
    pub hidden_size: usize,
    /// The number of layers.
    pub num_hidden_layers: usize,
    /// The number of attention heads.
    pub num_attention_heads: usize,
    /// The size inside the feed-forward block.
    pub intermediate_size: usize,
    /// The activation of the feed-forward block, and of the head that predicts tokens.
    pub hidden_act: Activation,
    /// The share of hidden values that the reference drops in training; not used here.
    pub hidden_dropout_prob: f64,
    /// The share of attention weights that the reference drops in training; not used here.
    pub attention_probs_dropout_prob: f64,
    /// How many positions have embeddings.
    pub max_position_embeddings: usize,
    /// How many token types have embeddings.
    pub type_vocab_size: usize,
    /// The standard deviation of fresh weights.
    pub initializer_range: f64,
    /// What the norms add to the variance.
    pub layer_norm_eps: f64,
    /// The padding token.
    pub pad_token_id: Option<i64>,
    /// Whether a decoder keeps keys and values unless a call says otherwise.
    pub use_cache: bool,
    /// The share of values before a classifier that the reference drops in training; not used here.
    pub classifier_dropout: Option<f64>,
    /// Whether a position looks at no later ones.
    pub is_decoder: bool,
    /// Whether each layer also looks at what an encoder gave; a decoder's only.
    pub add_cross_attention: bool,
    /// The token that begins a text.
    pub bos_token_id: Option<i64>,
    /// The tokens that end a text.
    pub eos_token_id: Option<TokenIds>,
    /// Whether the head that predicts tokens uses the embedding's weight.
    pub tie_word_embeddings: bool,
    /// What is not about the architecture, and everything else.
    #[serde(flatten)]
    pub general: GeneralConfig,
}

impl Default for BertConfig {
    fn default() -> Self {
        Self {
            vocab_size: 30_522,
            hidden_size: 768,
            num_hidden_layers: 12,
            num_attention_heads: 12,
            intermediate_size: 3072,
            hidden_act: Activation::Gelu,
            hidden_dropout_prob: 0.1,
            attention_probs_dropout_prob: 0.1,
            max_position_embeddings: 512,
            type_vocab_size: 2,
            initializer_range: 0.02,
            layer_norm_eps: 1e-12,
            pad_token_id: Some(0),
            use_cache: true,
            classifier_dropout: None,
            is_decoder: false,
            add_cross_attention: false,
            bos_token_id: None,
            eos_token_id: None,
            tie_word_embeddings: true,
            general: GeneralConfig::new(Self::MODEL_TYPE),
        }
    }
}

impl BertConfig {
    /// The size of an attention head.
    pub fn head_dim(&self) -> usize {
        self.hidden_size / self.num_attention_heads.max(1)
    }

    /// The shape of the stack of layers.
    pub(crate) fn stack(&self) -> Stack<'_> {
        let layers = self.num_hidden_layers;
        let stack = match self.is_decoder {
            true => Stack::decoder(&self.general, layers, [self.num_attention_heads, self.head_dim()], self.use_cache),
            false => Stack::encoder(&self.general, layers),
        };
        Stack {
            encoder_size: self.add_cross_attention.then_some(self.hidden_size),
            max_positions: Some(self.max_position_embeddings),
            ..stack
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        let hidden = self.hidden_size;
        let attention = if self.add_cross_attention { 8 } else { 4 };
        let layer = product(&[attention, hidden, hidden]).saturating_add(product(&[2, hidden, self.intermediate_size]));
        let rows = [self.vocab_size, self.max_position_embeddings, self.type_vocab_size];
        let tables = rows.iter().fold(0, |sum: u64, rows| sum.saturating_add(product(&[*rows, hidden])));
        validate_stack(
            &self.general,
            &StackSizes {
                sizes: &[
                    ("vocab_size", self.vocab_size),
                    ("hidden_size", hidden),
                    ("intermediate_size", self.intermediate_size),
                    ("num_attention_heads", self.num_attention_heads),
                    ("max_position_embeddings", self.max_position_embeddings),
                    ("type_vocab_size", self.type_vocab_size),
                ],
                layers: ("num_hidden_layers", self.num_hidden_layers),
                numbers: &[("layer_norm_eps", self.layer_norm_eps), ("initializer_range", self.initializer_range)],
                keys: &["hidden_states", "attentions", "cross_attentions"],
                parameters: [layer, tables.saturating_mul(2)],
            },
        )?;
        multiple_of(("hidden_size", hidden), ("num_attention_heads", self.num_attention_heads))?;
        if self.add_cross_attention && !self.is_decoder {
            return Err(ConfigError::Missing { field: "is_decoder", because: "`add_cross_attention`".to_owned() });
        }
        // the reference no longer has the others, and would compute something else than what was trained
        match self.general.extra.get("position_embedding_type") {
            None | Some(Value::Null) => Ok(()),
            Some(Value::String(kind)) if kind == "absolute" => Ok(()),
            Some(found) => Err(ConfigError::out_of_range("position_embedding_type", found, "\"absolute\"")),
        }
    }
}

model_config!(BertConfig, "bert", use_cache: |config| Some(config.use_cache));
