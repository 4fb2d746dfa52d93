//! Continuing token sequences: greedily or by sampling, with or without a cache, recording each step.

mod config;
mod error;
mod run;
mod output;
mod sampling;

pub use config::GenerationConfig;
pub use error::GenerateError;
pub use run::{generate, generate_with};
pub use output::{GenerateOutput, Step};
