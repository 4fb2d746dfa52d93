use crate::config::{
    ConfigError, ExpertsFields, ExpertsShape, GeneralConfig, RopeParameters, TokenIds, decoder_config,
};
use crate::layers::Activation;
use serde::{Deserialize, Serialize};

/// The `config.json` of a Mixtral model. Fields are named as there; what is absent has the reference's default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, remote = "Self")]
pub struct MixtralConfig {
    /// The size of the vocabulary.
    pub vocab_size: usize,
    /// The size of a hidden state.
    pub hidden_size: usize,
    /// The size inside an expert.
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
    /// The activation of the experts.
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
    /// How many tokens back attention looks, itself included; absent: all.
    pub sliding_window: Option<usize>,
    /// How many experts serve a token.
    pub num_experts_per_tok: usize,
    /// How many experts each layer has.
    pub num_local_experts: usize,
    /// How much the loss that balances experts counts.
    pub router_aux_loss_coef: f64,
    /// By how much the reference shakes what routers see in training; not used here.
    pub router_jitter_noise: f64,
    /// What is not about the architecture, and everything else.
    #[serde(flatten)]
    pub general: GeneralConfig,
}

impl Default for MixtralConfig {
    fn default() -> Self {
        Self {
            vocab_size: 32_000,
            hidden_size: 4096,
            intermediate_size: 14_336,
            num_hidden_layers: 32,
            num_attention_heads: 32,
            num_key_value_heads: Some(8),
            head_dim: None,
            hidden_act: Activation::Silu,
            max_position_embeddings: 131_072,
            initializer_range: 0.02,
            rms_norm_eps: 1e-5,
            use_cache: true,
            pad_token_id: None,
            bos_token_id: Some(1),
            eos_token_id: Some(TokenIds::One(2)),
            tie_word_embeddings: false,
            rope_parameters: RopeParameters { rope_theta: 1e6, ..RopeParameters::default() },
            attention_dropout: 0.0,
            sliding_window: None,
            num_experts_per_tok: 2,
            num_local_experts: 8,
            router_aux_loss_coef: 0.001,
            router_jitter_noise: 0.0,
            general: GeneralConfig::new(Self::MODEL_TYPE),
        }
    }
}

impl MixtralConfig {
    fn validate_family(&self) -> Result<(), ConfigError> {
        if self.head_dim.is_some() {
            return Ok(());
        }
        crate::config::multiple_of(("hidden_size", self.hidden_size), ("num_attention_heads", self.num_attention_heads))
    }
}

decoder_config!(MixtralConfig, "mixtral", {
    fn sliding_window(&self, _layer: usize) -> Option<usize> {
        self.sliding_window
    }
    fn experts(&self) -> Option<ExpertsShape> {
        let shape = ExpertsShape {
            layers: (0..self.num_hidden_layers).collect(),
            num_experts: self.num_local_experts,
            top_k: self.num_experts_per_tok,
            intermediate_size: self.intermediate_size,
            aux_loss_coef: self.router_aux_loss_coef,
            fields: ExpertsFields {
                num_experts: "num_local_experts",
                top_k: "num_experts_per_tok",
                intermediate_size: "intermediate_size",
                aux_loss_coef: "router_aux_loss_coef",
            },
        };
        (!shape.layers.is_empty()).then_some(shape)
    }
    fn head_dim(&self) -> usize {
        self.head_dim.unwrap_or_else(|| self.hidden_size / self.num_attention_heads.max(1))
    }
});
