use crate::error::ForwardError;
use patching_core::weights::ReadError;
use std::path::PathBuf;
use thiserror::Error;

/// Why nothing was generated.
#[derive(Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// A forward pass failed.
    #[error(transparent)]
    Forward(#[from] ForwardError),

    /// A setting makes no sense.
    #[error("`{name}` is {found}, expected {expected}")]
    Setting {
        /// The field of the generation config.
        name: &'static str,
        /// Its value.
        found: String,
        /// What it may be.
        expected: &'static str,
    },

    /// Settings that change what the reference generates and that are not followed here.
    #[error("the generation config has settings that are not supported: {}; take them out of `extra` to do without", .found.join(", "))]
    Unsupported {
        /// Each with its value.
        found: Vec<String>,
    },

    /// A token that is to be chosen, and that the model does not have.
    #[error("`{name}` is {found}, expected a token of the vocabulary, 0 to {}", .vocabulary.saturating_sub(1))]
    OutsideVocabulary {
        /// The field of the generation config.
        name: &'static str,
        /// The token.
        found: i64,
        /// How many tokens there are.
        vocabulary: usize,
    },

    /// An argument that only a single forward pass has.
    #[error("`{0}` cannot be given to `generate`")]
    Argument(&'static str),

    /// Nothing says which token a decoder begins with.
    #[error(
        "neither the generation config nor the model's has a `decoder_start_token_id`, and no `decoder_input_ids` are given"
    )]
    NoStartToken,

    /// What Whisper is told does not fit.
    #[error(transparent)]
    Speech(#[from] crate::whisper::SpeechError),

    /// The prompt is not token ids.
    #[error("`generate` needs a prompt of `input_ids`")]
    NoPrompt,

    /// The model gave scores that are no numbers.
    #[error("the scores of sequence {row} at step {step} hold no finite number")]
    NoFiniteScore {
        /// The sequence.
        row: usize,
        /// The step, counted from 0.
        step: usize,
    },

    /// Several sequences that end at different times, and nothing to fill the shorter ones up with.
    #[error("a batch of {batch} sequences needs `pad_token_id` to fill up those that end first")]
    NoPadToken {
        /// The number of sequences.
        batch: usize,
    },

    /// A `generation_config.json` cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),

    /// A `generation_config.json` is not what it should be.
    #[error("`{}`: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

patching_core::__debug_as_display!(GenerateError);
