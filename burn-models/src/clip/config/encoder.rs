use super::{CLIPTextConfig, CLIPVisionConfig};
use crate::config::{ConfigError, GeneralConfig, StackSizes, multiple_of, product, validate_stack};
use crate::layers::Activation;

/// What the layers of both towers are made from: the fields that their configs have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CLIPEncoderConfig {
    /// The size of a hidden state.
    pub hidden_size: usize,
    /// The size inside the feed-forward block.
    pub intermediate_size: usize,
    /// The number of layers.
    pub num_hidden_layers: usize,
    /// The number of heads.
    pub num_attention_heads: usize,
    /// The activation of the feed-forward block.
    pub hidden_act: Activation,
    /// What the norms add to the variance.
    pub layer_norm_eps: f64,
    /// What the standard deviations of fresh weights are multiplied by.
    pub initializer_factor: f64,
}

macro_rules! encoder_of {
    ($($config:ident),*) => { $(
        impl From<&$config> for CLIPEncoderConfig {
            fn from(config: &$config) -> Self {
                Self {
                    hidden_size: config.hidden_size,
                    intermediate_size: config.intermediate_size,
                    num_hidden_layers: config.num_hidden_layers,
                    num_attention_heads: config.num_attention_heads,
                    hidden_act: config.hidden_act,
                    layer_norm_eps: config.layer_norm_eps,
                    initializer_factor: config.initializer_factor,
                }
            }
        }
    )* };
}
encoder_of!(CLIPTextConfig, CLIPVisionConfig);

impl CLIPEncoderConfig {
    /// Checks that a tower can be built, without building anything; `sizes` are further fields of its config, and
    /// `rest` is about how many parameters it has beside its layers.
    pub(super) fn check(
        &self,
        general: &GeneralConfig,
        sizes: &[(&'static str, usize)],
        rest: u64,
    ) -> Result<(), ConfigError> {
        let hidden = self.hidden_size;
        let own = [
            ("hidden_size", hidden),
            ("intermediate_size", self.intermediate_size),
            ("num_attention_heads", self.num_attention_heads),
        ];
        let layer = product(&[4, hidden, hidden]).saturating_add(product(&[2, hidden, self.intermediate_size]));
        validate_stack(
            general,
            &StackSizes {
                sizes: &[&own, sizes].concat(),
                layers: ("num_hidden_layers", self.num_hidden_layers),
                numbers: &[("layer_norm_eps", self.layer_norm_eps), ("initializer_factor", self.initializer_factor)],
                keys: &["hidden_states", "attentions"],
                parameters: [layer, rest],
            },
        )?;
        multiple_of(("hidden_size", hidden), ("num_attention_heads", self.num_attention_heads))
    }

    /// The standard deviations of fresh weights: into a block of each layer, and out of it.
    pub(in crate::clip) fn deviations(&self) -> Deviations {
        let (size, layers) = (self.hidden_size.max(1) as f64, self.num_hidden_layers.max(1) as f64);
        let factor = self.initializer_factor;
        Deviations {
            into: factor / (size * 2.0 * layers).sqrt(),
            out_of: factor / size.sqrt(),
            widening: factor / (2.0 * size).sqrt(),
        }
    }
}

/// Standard deviations of fresh weights.
#[derive(Clone, Copy, Debug)]
pub(in crate::clip) struct Deviations {
    /// Of the projections to queries, keys and values, and out of the feed-forward block.
    pub(in crate::clip) into: f64,
    /// Of the projection out of attention.
    pub(in crate::clip) out_of: f64,
    /// Of the first map of the feed-forward block.
    pub(in crate::clip) widening: f64,
}
