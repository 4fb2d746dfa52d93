use crate::config::ConfigError;
use patching_core::weights::{ConfigError as ReadConfigError, ConfigProblem, ReadError, read_text};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

const FEATURE_EXTRACTOR_TYPE: &str = "WhisperFeatureExtractor";

/// The file that a feature extractor is saved in, and the one that holds it among other parts of a processor.
const FEATURE_EXTRACTOR_NAME: &str = "preprocessor_config.json";
const PROCESSOR_NAME: &str = "processor_config.json";
const FEATURE_EXTRACTOR_FIELDS: [&str; 2] = ["feature_extractor", "audio_processor"];

/// Early checkpoints have the mel filters in the file, 400 KiB; far beyond anything real.
const CONFIG_LIMIT: u64 = 16 << 20;

/// More than an hour at the rate of real models.
const MAX_SAMPLES: usize = 1 << 26;

/// More filters than any spectrum needs.
const MAX_FEATURE_SIZE: usize = 1 << 14;

/// More values than the features of any chunk have.
const MAX_VALUES: usize = 1 << 26;

/// The numbers of a [`WhisperFeatureExtractor`](super::WhisperFeatureExtractor): the fields of `preprocessor_config.json`.
///
/// A field that the file lacks has the reference's default. What the reference computes anew, whatever the file says
/// (`n_samples`, `nb_max_frames`, `mel_filters`), is no field here.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default)]
pub struct WhisperFeatureExtractorConfig {
    /// The number of mel bins of a spectrum; 80 by default. The model's `num_mel_bins`.
    pub feature_size: usize,
    /// The rate of the samples in Hz; 16000 by default.
    pub sampling_rate: u32,
    /// The number of samples between the middles of two spectra; 160 by default.
    pub hop_length: usize,
    /// The length of a chunk in seconds, to which every recording is padded; 30 by default.
    pub chunk_length: usize,
    /// The number of samples that a spectrum is computed from; 400 by default.
    pub n_fft: usize,
    /// The sample that fills up a chunk; 0 by default, silence.
    pub padding_value: f32,
    /// The standard deviation of the normal noise that is added to every sample; 0 by default, no noise.
    pub dither: f64,
}

impl Default for WhisperFeatureExtractorConfig {
    fn default() -> Self {
        Self {
            feature_size: 80,
            sampling_rate: 16_000,
            hop_length: 160,
            chunk_length: 30,
            n_fft: 400,
            padding_value: 0.0,
            dither: 0.0,
        }
    }
}

impl WhisperFeatureExtractorConfig {
    /// Reads the config from the folder `dir`: from `feature_extractor` in `processor_config.json`, where newer versions of the
    /// reference save it, else from `preprocessor_config.json`.
    ///
    /// # Errors
    ///
    /// When neither file has it, when it is not JSON, is of another kind of feature extractor, or has a field that is wrong; the
    /// error names the file and the field.
    pub fn from_pretrained(dir: impl AsRef<Path>) -> Result<Self, ReadConfigError> {
        let path = dir.as_ref().join(PROCESSOR_NAME);
        match read_text(&path, CONFIG_LIMIT) {
            Ok(text) => {
                let processor: Map<String, Value> = parse(&path, &text)?;
                let nested = FEATURE_EXTRACTOR_FIELDS.iter().find_map(|field| processor.get(*field));
                if let Some(nested) = nested.filter(|nested| !nested.is_null()) {
                    return Self::from_file(path, &nested.to_string());
                }
            }
            Err(ReadError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        let path = dir.as_ref().join(FEATURE_EXTRACTOR_NAME);
        let text = read_text(&path, CONFIG_LIMIT)?;
        Self::from_file(path, &text)
    }

    fn from_file(path: PathBuf, text: &str) -> Result<Self, ReadConfigError> {
        let head: Head = parse(&path, text)?;
        let problem = match head.feature_extractor_type {
            Some(found) if found != FEATURE_EXTRACTOR_TYPE => {
                format!("`feature_extractor_type` is `{found}`, expected `{FEATURE_EXTRACTOR_TYPE}`")
            }
            _ => {
                let config: Self = parse(&path, text)?;
                match config.validate() {
                    Ok(()) => return Ok(config),
                    Err(error) => error.to_string(),
                }
            }
        };
        Err(ReadConfigError::Invalid { path, problem: ConfigProblem::Value(problem) })
    }

    /// The number of samples of a chunk.
    pub fn n_samples(&self) -> usize {
        usize::try_from(self.sampling_rate).map_or(usize::MAX, |rate| rate.saturating_mul(self.chunk_length))
    }

    /// The number of spectra of a chunk: twice the model's `max_source_positions`.
    ///
    /// With an even `n_fft` it is `n_samples / hop_length`, the reference's `nb_max_frames`.
    pub fn num_frames(&self) -> usize {
        // The last spectrum, in the middle of which the chunk ends, is dropped.
        self.n_samples().saturating_sub(self.n_fft % 2).checked_div(self.hop_length).unwrap_or(0)
    }

    /// Checks that features can be computed with these numbers.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let samples = self.n_samples();
        let sizes = [
            ("feature_size", self.feature_size, 1, MAX_FEATURE_SIZE),
            ("chunk_length", self.chunk_length, 1, MAX_SAMPLES),
            ("sampling_rate", self.sampling_rate as usize, 1, MAX_SAMPLES.checked_div(self.chunk_length).unwrap_or(0)),
            // Padding mirrors half a spectrum's samples at each end of the chunk, without the sample at the end.
            ("n_fft", self.n_fft, 2, samples.saturating_mul(2).saturating_sub(1)),
            ("hop_length", self.hop_length, 1, samples.saturating_sub(self.n_fft % 2)),
        ];
        for (field, found, least, most) in sizes {
            if found < least || found > most {
                return Err(ConfigError::out_of_range(field, found, format!("{least} to {most}")));
            }
        }
        let most = MAX_VALUES.checked_div(self.num_frames()).unwrap_or(0);
        if self.feature_size > most {
            return Err(ConfigError::out_of_range("feature_size", self.feature_size, format!("at most {most}")));
        }
        if !self.padding_value.is_finite() {
            return Err(ConfigError::out_of_range("padding_value", self.padding_value, "a finite number"));
        }
        if !(0.0..=1.0).contains(&self.dither) {
            return Err(ConfigError::out_of_range("dither", self.dither, "0 to 1"));
        }
        Ok(())
    }
}

/// What the file says it is.
#[derive(Deserialize)]
struct Head {
    feature_extractor_type: Option<String>,
}

fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, ReadConfigError> {
    let invalid = |field: String, source| ReadConfigError::Invalid {
        path: path.to_owned(),
        problem: ConfigProblem::Field { field, source },
    };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|error| invalid(error.path().to_string(), error.into_inner()))?;
    deserializer.end().map_err(|source| invalid(".".to_owned(), source))?;
    Ok(value)
}
