use super::AudioError;
use hound::{SampleFormat, WavReader};
use patching_core::weights::ReadError;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// A recording of one channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Audio {
    /// The samples, where the loudest that a file of whole numbers can hold are at -1 and 1.
    pub samples: Vec<f32>,
    /// The number of samples in a second.
    pub sampling_rate: u32,
}

/// Reads a WAV file: whole numbers of 8 to 32 bits, or floating point numbers of 32 bits. Several channels become their mean.
///
/// # Errors
///
/// When the file cannot be read, is no regular file, is no WAV file, is one of another kind (compressed, say), or ends before
/// its last sample.
pub fn read_wav(path: impl AsRef<Path>) -> Result<Audio, AudioError> {
    let path = path.as_ref();
    let failed = |source| ReadError::Io { action: "open", path: path.to_owned(), source };
    // Opening a pipe could block for ever.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(ReadError::NotAFile { path: path.to_owned() }.into());
    }
    let file = BufReader::new(File::open(path).map_err(failed)?);
    decode(file).map_err(|source| AudioError::Wav { path: path.to_owned(), source: Box::new(source) })
}

fn decode(file: impl Read) -> Result<Audio, hound::Error> {
    let reader = WavReader::new(file)?;
    let spec = reader.spec();
    let channels = usize::from(spec.channels);
    let samples = match spec.sample_format {
        SampleFormat::Float => mean_of_channels(reader.into_samples::<f32>(), channels),
        SampleFormat::Int => {
            let loudest = 2.0_f32.powi(i32::from(spec.bits_per_sample) - 1);
            let samples = reader.into_samples::<i32>();
            mean_of_channels(samples.map(|sample| Ok(sample? as f32 / loudest)), channels)
        }
    }?;
    Ok(Audio { samples, sampling_rate: spec.sample_rate })
}

/// The file's header says how many samples there are, and may lie: memory is only taken for samples that are there.
fn mean_of_channels(
    mut samples: impl Iterator<Item = Result<f32, hound::Error>>,
    channels: usize,
) -> Result<Vec<f32>, hound::Error> {
    let mut means = Vec::new();
    while let Some(first) = samples.next() {
        let mut sum = first?;
        for _ in 1..channels {
            sum += samples.next().ok_or(hound::Error::UnfinishedSample)??;
        }
        means.push(if channels > 1 { sum / channels as f32 } else { sum });
    }
    Ok(means)
}
