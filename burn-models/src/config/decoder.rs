use super::{ConfigError, GeneralConfig, RopeParameters, TokenIds};
use crate::layers::Activation;
use crate::layers::attention::AttentionInterface;
use patching_core::weights::PretrainedConfig;
use serde::{Deserialize, Serialize};

/// More layers than any model has.
pub const MAX_LAYERS: usize = 4096;

/// More parameters than any model has.
pub const MAX_PARAMETERS: u64 = 1 << 44;

/// More than any single size of a model is.
const MAX_SIZE: usize = 1 << 28;

/// How far back a layer's attention looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayerType {
    /// To the first token.
    FullAttention,
    /// As far as `sliding_window` says.
    SlidingAttention,
}

/// What the layers that decoders share ask of a family's config.
pub trait DecoderConfig: PretrainedConfig {
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
    /// What is not about the architecture.
    fn general(&self) -> &GeneralConfig;
    /// The same, to change it.
    fn general_mut(&mut self) -> &mut GeneralConfig;

    /// How many tokens back layer `layer` looks, itself included; `None`: all.
    fn sliding_window(&self, _layer: usize) -> Option<usize> {
        None
    }

    /// [`sliding_window`](Self::sliding_window) of every layer.
    fn windows(&self) -> Vec<Option<usize>> {
        (0..self.num_hidden_layers()).map(|layer| self.sliding_window(layer)).collect()
    }
}

/// Checks that a decoder can be built from `config`, without building anything.
///
/// # Errors
///
/// Names the first field that does not fit.
pub fn validate_decoder<C: DecoderConfig>(config: &C) -> Result<(), ConfigError> {
    let sizes = [
        ("vocab_size", config.vocab_size()),
        ("hidden_size", config.hidden_size()),
        ("intermediate_size", config.intermediate_size()),
        ("num_attention_heads", config.num_attention_heads()),
        ("num_key_value_heads", config.num_key_value_heads()),
        ("head_dim", config.head_dim()),
    ];
    for (field, found) in sizes {
        if found == 0 || found > MAX_SIZE {
            return Err(ConfigError::out_of_range(field, found, format!("1 to {MAX_SIZE}")));
        }
    }
    let layers = config.num_hidden_layers();
    if layers > MAX_LAYERS {
        return Err(ConfigError::out_of_range("num_hidden_layers", layers, format!("at most {MAX_LAYERS}")));
    }
    multiple_of(
        ("num_attention_heads", config.num_attention_heads()),
        ("num_key_value_heads", config.num_key_value_heads()),
    )?;
    config.rope_parameters().validate(config.head_dim())?;
    for (field, value) in [("rms_norm_eps", config.rms_norm_eps()), ("initializer_range", config.initializer_range())] {
        if !(value.is_finite() && value >= 0.0) {
            return Err(ConfigError::out_of_range(field, value, "zero or a positive number"));
        }
    }
    if let Some(layer) = (0..layers).find(|layer| config.sliding_window(*layer) == Some(0)) {
        return Err(ConfigError::out_of_range("sliding_window", 0, format!("at least 1, as layer {layer} uses it")));
    }
    for key in ["hidden_states", "attentions"] {
        config.general().check_output(key)?;
    }
    let found = parameters(config);
    if found > MAX_PARAMETERS {
        return Err(ConfigError::TooLarge { found, limit: MAX_PARAMETERS });
    }
    AttentionInterface::check(config.general().attn_implementation.as_deref())
}

/// Checks that the first is a multiple of the second.
pub(crate) fn multiple_of(
    (field, found): (&'static str, usize),
    (divisor_field, divisor): (&'static str, usize),
) -> Result<(), ConfigError> {
    if divisor == 0 || !found.is_multiple_of(divisor) {
        return Err(ConfigError::NotAMultiple { field, found, divisor_field, divisor });
    }
    Ok(())
}

/// The window of layer `layer` where each layer may have one: as `layer_types` says, or else from
/// `max_window_layers` on.
pub(crate) fn layered_window(
    window: Option<usize>,
    max_window_layers: usize,
    layer_types: Option<&[LayerType]>,
    layer: usize,
) -> Option<usize> {
    let slides = match layer_types {
        Some(types) => types.get(layer) == Some(&LayerType::SlidingAttention),
        None => layer >= max_window_layers,
    };
    window.filter(|_| slides)
}

/// Checks that there is one layer type for each layer, and a window where one slides.
pub(crate) fn validate_layer_types(
    layer_types: Option<&[LayerType]>,
    layers: usize,
    window: Option<usize>,
) -> Result<(), ConfigError> {
    let Some(types) = layer_types else {
        return Ok(());
    };
    if types.len() != layers {
        return Err(ConfigError::WrongLength { field: "layer_types", found: types.len(), expected: layers });
    }
    if window.is_none() && types.contains(&LayerType::SlidingAttention) {
        return Err(ConfigError::Missing {
            field: "sliding_window",
            because: "`sliding_attention` in `layer_types` (with `use_sliding_window`)".to_owned(),
        });
    }
    Ok(())
}

/// The number of parameters of the large matrices.
fn parameters<C: DecoderConfig>(config: &C) -> u64 {
    let heads = (config.num_attention_heads() as u64)
        .saturating_add(config.num_key_value_heads() as u64)
        .saturating_mul(2 * config.head_dim() as u64);
    let hidden = config.hidden_size() as u64;
    let layer = heads.saturating_add(3 * config.intermediate_size() as u64).saturating_mul(hidden);
    let embeddings = (2 * config.vocab_size() as u64).saturating_mul(hidden);
    layer.saturating_mul(config.num_hidden_layers() as u64).saturating_add(embeddings)
}

/// Implements reading, the defaults of a call, and [`DecoderConfig`] for a config struct with the usual fields.
///
/// Given are the struct, its `model_type`, and the methods that are not the field of the same name.
macro_rules! decoder_config {
    ($config:ident, $model_type:literal, { $($special:item)* }) => {
        impl $config {
            /// The `model_type` of this family.
            pub const MODEL_TYPE: &'static str = $model_type;

            /// Checks that a model can be built from this config, without building anything.
            ///
            /// # Errors
            ///
            /// Names the first field that does not fit.
            pub fn validate(&self) -> Result<(), $crate::config::ConfigError> {
                self.validate_family()?;
                $crate::config::validate_decoder(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $config {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use serde::de::Error;
                let fields = serde_json::Map::deserialize(deserializer)?;
                let fields = $crate::config::normalized(fields);
                let config = $config::deserialize(serde_json::Value::Object(fields)).map_err(D::Error::custom)?;
                config.validate().map_err(D::Error::custom)?;
                Ok(config)
            }
        }

        impl serde::Serialize for $config {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $config::serialize(self, serializer)
            }
        }

        impl patching_core::weights::PretrainedConfig for $config {
            const MODEL_TYPES: &'static [&'static str] = &[$model_type];

            fn set_attn_implementation(&mut self, name: &str) {
                self.general.attn_implementation = Some(name.to_owned());
            }

            fn attn_implementation(&self) -> Option<&str> {
                self.general.attn_implementation.as_deref()
            }
        }

        impl patching_core::capture::ConfigDefaults for $config {
            fn output_flag(&self, key: &str) -> Option<patching_core::capture::Flag> {
                self.general.output_flag(key)
            }
            fn return_dict(&self) -> Option<bool> {
                self.general.return_dict
            }
            fn tie_last_hidden_states(&self) -> Option<bool> {
                self.general.tie_last_hidden_states
            }
            fn use_cache(&self) -> Option<bool> {
                Some(self.use_cache)
            }
            fn is_causal(&self) -> Option<bool> {
                self.general.extra.get("is_causal").and_then(serde_json::Value::as_bool)
            }
        }

        impl $crate::config::DecoderConfig for $config {
            fn vocab_size(&self) -> usize {
                self.vocab_size
            }
            fn hidden_size(&self) -> usize {
                self.hidden_size
            }
            fn intermediate_size(&self) -> usize {
                self.intermediate_size
            }
            fn num_hidden_layers(&self) -> usize {
                self.num_hidden_layers
            }
            fn num_attention_heads(&self) -> usize {
                self.num_attention_heads
            }
            fn num_key_value_heads(&self) -> usize {
                self.num_key_value_heads.unwrap_or(self.num_attention_heads)
            }
            fn hidden_act(&self) -> $crate::layers::Activation {
                self.hidden_act
            }
            fn max_position_embeddings(&self) -> usize {
                self.max_position_embeddings
            }
            fn initializer_range(&self) -> f64 {
                self.initializer_range
            }
            fn rms_norm_eps(&self) -> f64 {
                self.rms_norm_eps
            }
            fn rope_parameters(&self) -> &$crate::config::RopeParameters {
                &self.rope_parameters
            }
            fn tie_word_embeddings(&self) -> bool {
                self.tie_word_embeddings
            }
            fn use_cache(&self) -> bool {
                self.use_cache
            }
            fn pad_token_id(&self) -> Option<i64> {
                self.pad_token_id
            }
            fn bos_token_id(&self) -> Option<i64> {
                self.bos_token_id
            }
            fn eos_token_id(&self) -> Option<&$crate::config::TokenIds> {
                self.eos_token_id.as_ref()
            }
            fn general(&self) -> &$crate::config::GeneralConfig {
                &self.general
            }
            fn general_mut(&mut self) -> &mut $crate::config::GeneralConfig {
                &mut self.general
            }
            $($special)*
        }
    };
}
pub(crate) use decoder_config;
