use crate::config::{
    ConfigError, ExpertsFields, ExpertsShape, GeneralConfig, LayerType, MAX_SIZE, RopeParameters, TokenIds,
    decoder_config, validate_layer_types,
};
use crate::layers::Activation;
use serde::{Deserialize, Serialize};

/// The `config.json` of a Qwen2-MoE model. Fields are named as there; what is absent has the reference's default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, remote = "Self")]
pub struct Qwen2MoeConfig {
    /// The size of the vocabulary.
    pub vocab_size: usize,
    /// The size of a hidden state.
    pub hidden_size: usize,
    /// The size inside the feed-forward block of a layer without experts.
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
    /// The activation of all feed-forward blocks.
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
    /// Whether every other layer below `max_window_layers`, the first among them, looks back a fixed number of tokens.
    pub use_sliding_window: bool,
    /// How many tokens back those layers look, themselves included.
    pub sliding_window: Option<usize>,
    /// From which layer on all look back to the first token.
    pub max_window_layers: usize,
    /// How far each layer looks back; absent: as the three fields above say.
    pub layer_types: Option<Vec<LayerType>>,
    /// Every so many layers, one has experts.
    pub decoder_sparse_step: usize,
    /// Layers that have no experts in any case.
    pub mlp_only_layers: Vec<usize>,
    /// The size inside an expert.
    pub moe_intermediate_size: usize,
    /// The size inside the expert that all tokens share.
    pub shared_expert_intermediate_size: usize,
    /// How many experts serve a token.
    pub num_experts_per_tok: usize,
    /// How many experts a layer has; 0: none has any.
    pub num_experts: usize,
    /// Whether what the experts of a token count adds up to 1.
    pub norm_topk_prob: bool,
    /// How much the loss that balances experts counts.
    pub router_aux_loss_coef: f64,
    /// Whether queries, keys and values have a bias.
    pub qkv_bias: bool,
    /// What is not about the architecture, and everything else.
    #[serde(flatten)]
    pub general: GeneralConfig,
}

impl Default for Qwen2MoeConfig {
    fn default() -> Self {
        Self {
            vocab_size: 151_936,
            hidden_size: 2048,
            intermediate_size: 5632,
            num_hidden_layers: 24,
            num_attention_heads: 16,
            num_key_value_heads: Some(16),
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
            decoder_sparse_step: 1,
            mlp_only_layers: Vec::new(),
            moe_intermediate_size: 1408,
            shared_expert_intermediate_size: 5632,
            num_experts_per_tok: 4,
            num_experts: 60,
            norm_topk_prob: false,
            router_aux_loss_coef: 0.001,
            qkv_bias: true,
            general: GeneralConfig::new(Self::MODEL_TYPE),
        }
    }
}

impl Qwen2MoeConfig {
    /// The window of the layers that have one.
    fn window(&self) -> Option<usize> {
        self.sliding_window.filter(|_| self.use_sliding_window)
    }

    /// Whether layer `layer` has experts.
    pub fn is_sparse(&self, layer: usize) -> bool {
        let is_step = (layer + 1).is_multiple_of(self.decoder_sparse_step.max(1));
        self.num_experts > 0 && is_step && !self.mlp_only_layers.contains(&layer)
    }

    fn validate_family(&self) -> Result<(), ConfigError> {
        validate_layer_types(self.layer_types.as_deref(), self.num_hidden_layers, self.window())?;
        let sizes = [
            ("decoder_sparse_step", self.decoder_sparse_step),
            ("shared_expert_intermediate_size", self.shared_expert_intermediate_size),
        ];
        if let Some((field, found)) = sizes.into_iter().find(|(_, size)| *size == 0 || *size > MAX_SIZE) {
            return Err(ConfigError::out_of_range(field, found, format!("1 to {MAX_SIZE}")));
        }
        if self.head_dim.is_some() {
            return Ok(());
        }
        crate::config::multiple_of(("hidden_size", self.hidden_size), ("num_attention_heads", self.num_attention_heads))
    }
}

decoder_config!(Qwen2MoeConfig, "qwen2_moe", {
    fn sliding_window(&self, layer: usize) -> Option<usize> {
        let slides = match &self.layer_types {
            Some(types) => types.get(layer) == Some(&LayerType::SlidingAttention),
            None => layer.is_multiple_of(2) && layer < self.max_window_layers,
        };
        self.window().filter(|_| slides)
    }
    fn experts(&self) -> Option<ExpertsShape> {
        let shape = ExpertsShape {
            layers: (0..self.num_hidden_layers).filter(|layer| self.is_sparse(*layer)).collect(),
            num_experts: self.num_experts,
            top_k: self.num_experts_per_tok,
            intermediate_size: self.moe_intermediate_size,
            aux_loss_coef: self.router_aux_loss_coef,
            fields: ExpertsFields {
                num_experts: "num_experts",
                top_k: "num_experts_per_tok",
                intermediate_size: "moe_intermediate_size",
                aux_loss_coef: "router_aux_loss_coef",
            },
        };
        (!shape.layers.is_empty()).then_some(shape)
    }
    fn head_dim(&self) -> usize {
        self.head_dim.unwrap_or_else(|| self.hidden_size / self.num_attention_heads.max(1))
    }
});
