//! Audio: from a file's samples to what a speech model's encoder takes.
//!
//! [`read_wav`] reads samples, [`WhisperFeatureExtractor`] turns them into log-mel spectra as the reference does. Nothing is
//! resampled: samples of another rate than the model's are an error that names both.
//!
//! ```
//! # #[cfg(feature = "flex")] {
//! use burn::tensor::Device;
//! use burn_models::audio::{WhisperFeatureExtractor, WhisperFeatureExtractorConfig, read_wav};
//!
//! // `WhisperFeatureExtractor::from_pretrained(folder)` for the one of a checkpoint.
//! let config = WhisperFeatureExtractorConfig { chunk_length: 12, ..WhisperFeatureExtractorConfig::default() };
//! let feature_extractor = WhisperFeatureExtractor::new(config)?;
//!
//! let audio = read_wav(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/audio/jfk.wav"))?;
//! let input_features = feature_extractor.extract(&audio.samples, audio.sampling_rate, &Device::flex())?;
//! assert_eq!(input_features.dims(), [1, 80, 1200]);
//! # }
//! # Ok::<(), burn_models::audio::AudioError>(())
//! ```

mod config;
mod error;
mod mel;
mod spectrogram;
mod wav;
mod whisper;

pub use config::WhisperFeatureExtractorConfig;
pub use error::AudioError;
pub use wav::{Audio, read_wav};
pub use whisper::WhisperFeatureExtractor;
