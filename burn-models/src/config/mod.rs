//! What a `config.json` says: the fields that families share, reading both spellings of Transformers
//! (version 4 and 5), and the checks that come before a model is built.

mod decoder;
mod error;
mod general;
mod image_size;
mod implement;
mod normalize;
mod rope;
mod token_ids;
mod validate;

pub use decoder::{DecoderConfig, ExpertsFields, ExpertsShape, LayerType, ModelConfig};
pub use error::ConfigError;
pub use general::GeneralConfig;
pub use image_size::ImageSize;
pub use normalize::normalized;
pub use rope::{RopeParameters, RopeType};
pub use token_ids::TokenIds;
pub use validate::{MAX_LAYERS, MAX_PARAMETERS, validate_decoder};

pub(crate) use implement::{config_defaults, config_json, decoder_config, model_config};
pub(crate) use normalize::{set_default_theta, take_other_names};
pub(crate) use validate::{
    MAX_SIZE, StackSizes, check_experts, layered_window, multiple_of, product, validate_layer_types, validate_stack,
};
