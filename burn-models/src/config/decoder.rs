use super::{GeneralConfig, RopeParameters, TokenIds};
use crate::layers::Activation;
use patching_core::weights::PretrainedConfig;
use serde::{Deserialize, Serialize};

/// How far back a layer's attention looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayerType {
    /// To the first token.
    FullAttention,
    /// As far as `sliding_window` says.
    SlidingAttention,
}

/// The numbers of a mixture of experts.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpertsShape {
    /// The layers that have experts, in order.
    pub layers: Vec<usize>,
    /// How many experts each of them has.
    pub num_experts: usize,
    /// How many experts serve a token.
    pub top_k: usize,
    /// The size inside an expert.
    pub intermediate_size: usize,
    /// How much the loss that balances experts counts.
    pub aux_loss_coef: f64,
    /// Where these numbers are from.
    pub fields: ExpertsFields,
}

/// What a family calls the numbers of its mixture of experts, for errors that name the field of `config.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpertsFields {
    /// The field that says how many experts a layer has.
    pub num_experts: &'static str,
    /// The one that says how many serve a token.
    pub top_k: &'static str,
    /// The one with the size inside an expert.
    pub intermediate_size: &'static str,
    /// The one that says how much the loss that balances experts counts.
    pub aux_loss_coef: &'static str,
}

/// What every family's config has.
pub trait ModelConfig: PretrainedConfig {
    /// What is not about the architecture.
    fn general(&self) -> &GeneralConfig;
    /// The same, to change it.
    fn general_mut(&mut self) -> &mut GeneralConfig;
}

/// What the layers that decoders share ask of a family's config.
pub trait DecoderConfig: ModelConfig {
    /// The size of the vocabulary.
    fn vocab_size(&self) -> usize;
    /// The size of a hidden state.
    fn hidden_size(&self) -> usize;
    /// The size inside a feed-forward block.
    fn intermediate_size(&self) -> usize;
    /// The number of layers.
    fn num_hidden_layers(&self) -> usize;
    /// The number of query heads.
    fn num_attention_heads(&self) -> usize;
    /// The number of key and value heads.
    fn num_key_value_heads(&self) -> usize;
    /// The size of one head.
    fn head_dim(&self) -> usize;
    /// The activation of the feed-forward blocks.
    fn hidden_act(&self) -> Activation;
    /// The context that the model was trained on.
    fn max_position_embeddings(&self) -> usize;
    /// The standard deviation of fresh weights.
    fn initializer_range(&self) -> f64;
    /// What the norms add to the variance.
    fn rms_norm_eps(&self) -> f64;
    /// How positions turn queries and keys.
    fn rope_parameters(&self) -> &RopeParameters;
    /// Whether the language model head uses the embedding's weight.
    fn tie_word_embeddings(&self) -> bool;
    /// Whether keys and values are kept unless a call says otherwise.
    fn use_cache(&self) -> bool;
    /// The padding token.
    fn pad_token_id(&self) -> Option<i64>;
    /// The token that begins a text.
    fn bos_token_id(&self) -> Option<i64>;
    /// The tokens that end a text.
    fn eos_token_id(&self) -> Option<&TokenIds>;

    /// The experts of the model, if any layer has some.
    fn experts(&self) -> Option<ExpertsShape> {
        None
    }

    /// How many tokens back layer `layer` looks, itself included; `None`: all.
    fn sliding_window(&self, _layer: usize) -> Option<usize> {
        None
    }

    /// [`sliding_window`](Self::sliding_window) of every layer.
    fn windows(&self) -> Vec<Option<usize>> {
        (0..self.num_hidden_layers()).map(|layer| self.sliding_window(layer)).collect()
    }
}
