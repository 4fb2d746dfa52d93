//! Transformer models on Burn that record every intermediate value and load Hugging Face checkpoints.
//!
//! A folder for each family; what families share lives once in [`layers`]. Configs are in [`config`], text generation
//! in [`generation`], and loading by what a checkpoint says it is in [`auto`].
#![forbid(unsafe_code)]

pub mod auto;
pub mod config;
mod error;
pub mod generation;
mod inputs;
pub mod layers;
pub mod llama;
pub mod mistral;
pub mod models;
mod outputs;
pub mod qwen2;
pub mod qwen3;

pub use error::ForwardError;
pub use inputs::{Labels, LogitsToKeep, TextInputs};
pub use outputs::{BaseModelOutputWithPast, CausalLMOutputWithPast, SequenceClassifierOutputWithPast};
