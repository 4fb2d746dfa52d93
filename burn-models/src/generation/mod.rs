//! Continuing token sequences: greedily or by sampling, with or without a cache, recording each step.

mod config;
mod error;
mod output;
mod processors;
mod run;
mod sampling;
mod seq2seq;
mod unsupported;

pub(crate) use config::DEFAULT_NEW_TOKENS;
pub use config::GenerationConfig;
pub use error::GenerateError;
pub use output::{AnyGenerateOutput, GenerateOutput, Step};
pub(crate) use processors::Processor;
pub use run::{generate, generate_with};
pub(crate) use seq2seq::generate_seq2seq_processed;
pub use seq2seq::{Batch, generate_seq2seq};
