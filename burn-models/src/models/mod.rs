//! What models have in common: the traits that generic code uses, and what is written once for all families.
//!
//! | | is |
//! | --- | --- |
//! | [`Model`] | anything that loads from a checkpoint |
//! | [`Tower`] | what records by its own declaration, alone or inside another |
//! | [`HasTower`] | a model that is one tower, with or without a head |
//! | [`Decoder`], [`BaseModel`], [`CausalLM`] | a decoder of text, without its head, and what generates |
//! | [`EncoderDecoder`], [`Seq2SeqLM`] | an encoder, and a decoder that looks at what it gives; one that generates |

mod base;
mod causal_lm;
mod classifier;
mod composite;
mod decoder;
mod decoder_model;
mod encoder_decoder;
mod image_features;
mod model;
mod requests;
mod seq2seq;
mod text_heads;
mod tower;

pub use base::BaseModel;
pub use causal_lm::CausalLM;
pub use decoder::Decoder;
pub use encoder_decoder::{EncoderDecoder, Seq2SeqLM};
pub use image_features::{FeatureLayers, image_features, placed_features};
pub use model::{HasTower, Model};
pub use tower::Tower;

pub(crate) use base::{base_model, decoder_class};
pub(crate) use causal_lm::{causal_lm, forward_causal, forward_moe_causal, generates_text};
pub(crate) use classifier::{forward_classifier, forward_moe_classifier, sequence_classifier};
pub(crate) use composite::composite;
pub(crate) use decoder::decoder_with_head;
pub(crate) use decoder_model::decoder_model;
pub(crate) use encoder_decoder::{
    ScoredTokens, begun_with, encode_decode, encoder_decoder_keys, encoder_decoder_plan, records_encoder, score_tokens,
    without_encoder,
};
pub(crate) use model::{base_tower, generate_any, model_head, no_encoder, no_labels};
pub(crate) use requests::{records_nothing, with_fields};
pub(crate) use seq2seq::{encoder_decoder, seq2seq_lm};
pub(crate) use text_heads::{NextTokens, classify_tokens, mark_answers};
pub(crate) use tower::{declared_keys, each_once, tower};
