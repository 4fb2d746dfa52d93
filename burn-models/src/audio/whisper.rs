use super::mel::MelFilterBank;
use super::spectrogram::PowerSpectrogram;
use super::{AudioError, WhisperFeatureExtractorConfig};
use burn::tensor::{DType, Device, Tensor, TensorData};
use rand::RngExt;
use std::borrow::Cow;
use std::path::Path;

/// The least power that has a logarithm.
const FLOOR: f64 = 1e-10;

/// How far below a recording's loudest value the others may be, in powers of ten.
const RANGE: f32 = 8.0;

/// More values than one tensor of features should have.
const MAX_BATCH_VALUES: usize = 1 << 31;

/// What Whisper's encoder takes, from samples: the logarithms of power spectra in mel bins.
///
/// A recording is padded to one chunk, 30 s in published models. Its spectra are those of overlapping windows with mirrored ends; their
/// mel bins are taken to the logarithm, kept within eight orders of magnitude of the loudest one, and scaled to about -1 to 1.
///
/// Longer recordings are an error, unless [`truncation`](Self::truncation) is allowed. To use all of one, give its pieces of
/// [`n_samples`](WhisperFeatureExtractorConfig::n_samples) to [`extract_batch`](Self::extract_batch).
///
/// The reference: <https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/models/whisper/feature_extraction_whisper.py>.
#[derive(Clone)]
pub struct WhisperFeatureExtractor {
    config: WhisperFeatureExtractorConfig,
    spectrogram: PowerSpectrogram,
    filters: MelFilterBank,
    truncation: bool,
}

impl std::fmt::Debug for WhisperFeatureExtractor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WhisperFeatureExtractor")
            .field("config", &self.config)
            .field("truncation", &self.truncation)
            .finish_non_exhaustive()
    }
}

impl WhisperFeatureExtractor {
    /// A feature extractor with these numbers.
    ///
    /// # Errors
    ///
    /// Names the first field of the config that does not fit.
    pub fn new(config: WhisperFeatureExtractorConfig) -> Result<Self, AudioError> {
        config.validate()?;
        let spectrogram = PowerSpectrogram::new(config.n_fft, config.hop_length);
        let filters = MelFilterBank::new(config.feature_size, spectrogram.frequencies(), config.sampling_rate);
        Ok(Self { config, spectrogram, filters, truncation: false })
    }

    /// The feature extractor of the checkpoint in the folder `dir`.
    ///
    /// # Errors
    ///
    /// As [`WhisperFeatureExtractorConfig::from_pretrained`].
    pub fn from_pretrained(dir: impl AsRef<Path>) -> Result<Self, AudioError> {
        Self::new(WhisperFeatureExtractorConfig::from_pretrained(dir)?)
    }

    /// Whether what a recording has beyond one chunk is dropped. It is not by default: such a recording is an error. The reference
    /// drops it unless told otherwise.
    #[must_use]
    pub fn truncation(self, truncation: bool) -> Self {
        Self { truncation, ..self }
    }

    /// The numbers that it works with.
    pub fn config(&self) -> &WhisperFeatureExtractorConfig {
        &self.config
    }

    /// The features of one recording, `[1, feature_size, num_frames]`: Whisper's `input_features`, `f32`.
    ///
    /// `samples` are those of one channel, between -1 and 1, `sampling_rate` of them in a second.
    ///
    /// # Errors
    ///
    /// When the rate is not the config's, or when there are no samples, more than a chunk has, or one that is not finite.
    pub fn extract(&self, samples: &[f32], sampling_rate: u32, device: &Device) -> Result<Tensor<3>, AudioError> {
        self.check_rate(sampling_rate)?;
        Ok(self.tensor(self.features(samples)?, 1, device))
    }

    /// The features of several recordings, `[batch, feature_size, num_frames]`, each as [`extract`](Self::extract) gives them.
    ///
    /// # Errors
    ///
    /// As [`extract`](Self::extract), and when there is no recording or there are too many for one tensor; the error names the
    /// recording.
    pub fn extract_batch<S: AsRef<[f32]>>(
        &self,
        recordings: &[S],
        sampling_rate: u32,
        device: &Device,
    ) -> Result<Tensor<3>, AudioError> {
        self.check_rate(sampling_rate)?;
        if recordings.is_empty() {
            return Err(AudioError::Empty { what: "recordings" });
        }
        let values = self.values().saturating_mul(recordings.len());
        if values > MAX_BATCH_VALUES {
            return Err(AudioError::BatchTooLarge { found: recordings.len(), values, limit: MAX_BATCH_VALUES });
        }
        let mut features = Vec::with_capacity(values);
        for (index, samples) in recordings.iter().enumerate() {
            let one = self.features(samples.as_ref());
            features.extend(one.map_err(|source| AudioError::InBatch { index, source: Box::new(source) })?);
        }
        Ok(self.tensor(features, recordings.len(), device))
    }

    fn tensor(&self, features: Vec<f32>, batch: usize, device: &Device) -> Tensor<3> {
        let shape = [batch, self.config.feature_size, self.config.num_frames()];
        Tensor::from_data(TensorData::new(features, shape), (device, DType::F32))
    }

    fn check_rate(&self, found: u32) -> Result<(), AudioError> {
        let expected = self.config.sampling_rate;
        if found == expected { Ok(()) } else { Err(AudioError::SamplingRate { found, expected }) }
    }

    /// How many values the features of one recording have.
    fn values(&self) -> usize {
        self.config.feature_size * self.config.num_frames()
    }

    /// The features of one recording, mel bin by mel bin.
    fn features(&self, samples: &[f32]) -> Result<Vec<f32>, AudioError> {
        let chunk = self.chunk(samples)?;
        let frames = self.config.num_frames();
        let mut features = vec![FLOOR.log10() as f32; self.values()];
        let mut loudest = f32::NEG_INFINITY;
        self.spectrogram.for_each(&chunk, frames, |frame, power| {
            let Some(power) = power else { return };
            let bins = features.iter_mut().skip(frame).step_by(frames);
            for (feature, power) in bins.zip(self.filters.apply(power)) {
                *feature = power.max(FLOOR).log10() as f32;
                loudest = loudest.max(*feature);
            }
        })?;
        let least = loudest.max(FLOOR.log10() as f32) - RANGE;
        for feature in &mut features {
            *feature = (feature.max(least) + 4.0) / 4.0;
        }
        Ok(features)
    }

    /// The samples of one chunk: padded or truncated, with noise if the config asks for it.
    fn chunk<'a>(&self, samples: &'a [f32]) -> Result<Cow<'a, [f32]>, AudioError> {
        let length = self.config.n_samples();
        if samples.is_empty() {
            return Err(AudioError::Empty { what: "samples" });
        }
        if samples.len() > length && !self.truncation {
            return Err(AudioError::TooLong { found: samples.len(), limit: length });
        }
        if let Some((index, found)) = samples.iter().enumerate().find(|(_, sample)| !sample.is_finite()) {
            return Err(AudioError::NotFinite { index, found: *found });
        }
        let mut chunk = Cow::Borrowed(samples.get(..length).unwrap_or(samples));
        if chunk.len() < length {
            chunk.to_mut().resize(length, self.config.padding_value);
        }
        if self.config.dither > 0.0 {
            let mut random = rand::rng();
            for sample in chunk.to_mut() {
                // the method of Box and Muller, which wants its first number above zero
                let (radius, turn) = (1.0 - random.random::<f64>(), random.random::<f64>());
                let normal = (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * turn).cos();
                *sample += (self.config.dither * normal) as f32;
            }
        }
        Ok(chunk)
    }
}
