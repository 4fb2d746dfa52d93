//! What the models of every decoder family have in common: the traits that generic code uses, and the heads.

mod base;
mod causal_lm;
mod classifier;
mod decoder;
mod decoder_model;

pub use base::BaseModel;
pub use causal_lm::CausalLM;
pub use decoder::Decoder;

pub(crate) use base::base_model;
pub(crate) use causal_lm::{causal_lm, forward_causal, forward_moe_causal};
pub(crate) use classifier::{forward_classifier, forward_moe_classifier, sequence_classifier};
pub(crate) use decoder::decoder_with_head;
pub(crate) use decoder_model::decoder_model;
