//! Continuing token sequences: greedily or by sampling, with or without a cache, recording each step.

mod config;
mod error;
mod output;
mod run;
mod sampling;
mod unsupported;

pub use config::GenerationConfig;
pub use error::GenerateError;
pub use output::{GenerateOutput, Step};
pub use run::{generate, generate_with};
