use patching_core::weights::ReadError;
use std::error::Error as StdError;
use std::path::PathBuf;
use thiserror::Error;

/// Why audio was not read or not turned into features.
#[derive(Error)]
#[non_exhaustive]
pub enum AudioError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),

    /// The file is no WAV file, or one of a kind that is not supported.
    #[error("cannot read `{}` as a WAV file: {source}", path.display())]
    Wav {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<dyn StdError + Send + Sync>,
    },

    /// The feature extractor's config cannot be read.
    #[error(transparent)]
    ReadConfig(#[from] patching_core::weights::ConfigError),

    /// No feature extractor can be made from the config's values.
    #[error(transparent)]
    Config(#[from] crate::config::ConfigError),

    /// The samples were taken at another rate than the model's.
    #[error("the samples have a rate of {found} Hz, expected {expected} Hz: resample them first")]
    SamplingRate {
        /// Their rate.
        found: u32,
        /// The rate that the model was trained on.
        expected: u32,
    },

    /// There is nothing to compute features of.
    #[error("found no {what}, expected at least one")]
    Empty {
        /// `samples` or `recordings`.
        what: &'static str,
    },

    /// A sample is no finite number.
    #[error("sample {index} is {found}, expected a finite number")]
    NotFinite {
        /// Where it is.
        index: usize,
        /// What it is.
        found: f32,
    },

    /// A recording does not fit into one chunk.
    #[error(
        "found {found} samples, expected at most {limit}, one chunk: cut them into chunks, or allow truncation, which drops the rest"
    )]
    TooLong {
        /// The number of samples.
        found: usize,
        /// How many a chunk has.
        limit: usize,
    },

    /// One recording of several is at fault.
    #[error("recording {index}: {source}")]
    InBatch {
        /// The recording.
        index: usize,
        /// What is wrong with it.
        source: Box<AudioError>,
    },

    /// The features of all recordings together would be more than fits into one tensor.
    #[error("the features of {found} recordings have {values} values together, expected at most {limit}")]
    BatchTooLarge {
        /// The number of recordings.
        found: usize,
        /// How many values their features have, saturated.
        values: usize,
        /// The most that is allowed.
        limit: usize,
    },

    /// The Fourier transform refused its input.
    #[error("the Fourier transform failed: {source}")]
    Transform {
        /// What it says.
        source: Box<dyn StdError + Send + Sync>,
    },
}

patching_core::__debug_as_display!(AudioError);
