//! Features of audio against the reference's numbers, and what is refused.

use crate::support::{device, devices, tensors};
use burn::tensor::{DType, Tensor, TensorData};
use burn_models::audio::{AudioError, WhisperFeatureExtractor, WhisperFeatureExtractorConfig, read_wav};
use hound::{SampleFormat, WavSpec, WavWriter};
use proptest::prelude::*;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The reference computes in single precision, which shows where a spectrum is quiet.
const TOLERANCE: f32 = 1e-4;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/audio")
}

#[derive(Deserialize)]
struct Case {
    config: WhisperFeatureExtractorConfig,
    samples: usize,
    frames: usize,
    columns: Option<Vec<usize>>,
}

fn floats(data: &TensorData) -> Vec<f32> {
    data.iter::<f32>().collect()
}

#[test]
fn features_are_those_of_the_reference() {
    let cases = std::fs::read_to_string(folder().join("cases.json")).expect("cases");
    let cases: BTreeMap<String, Case> = serde_json::from_str(&cases).expect("valid cases");
    let stored = tensors(&folder().join("features.safetensors"));
    let chirps = floats(&stored["samples"]);
    let speech = read_wav(folder().join("jfk.wav")).expect("a WAV file");
    assert_eq!((speech.sampling_rate, speech.samples.len()), (16_000, 176_000));

    for (name, case) in &cases {
        let samples = if case.samples > 0 { &chirps[..case.samples] } else { &speech.samples };
        let size = case.config.feature_size;
        let extractor = WhisperFeatureExtractor::new(case.config.clone()).expect("a config").truncation(true);
        for (backend, device) in devices() {
            let rate = case.config.sampling_rate;
            let features = extractor.extract(samples, rate, &device).expect("features");
            assert_eq!((features.dims(), features.dtype()), ([1, size, case.frames], DType::F32), "{name}");
            let features = floats(&features.to_data());
            let columns = case.columns.clone().unwrap_or_else(|| (0..case.frames).collect());
            for (at, expected) in floats(&stored[name]).into_iter().enumerate() {
                let (bin, column) = (at / columns.len(), columns[at % columns.len()]);
                let found = features[bin * case.frames + column];
                assert!(
                    (found - expected).abs() < TOLERANCE,
                    "{name} on {backend}, bin {bin}, frame {column}: {found} and {expected}"
                );
            }
        }
    }
}

fn small() -> WhisperFeatureExtractorConfig {
    WhisperFeatureExtractorConfig {
        feature_size: 8,
        sampling_rate: 1000,
        hop_length: 50,
        chunk_length: 1,
        n_fft: 64,
        ..WhisperFeatureExtractorConfig::default()
    }
}

fn extractor() -> WhisperFeatureExtractor {
    WhisperFeatureExtractor::new(small()).expect("a config")
}

fn wave(count: usize) -> Vec<f32> {
    (0..count).map(|i| (i as f32 * 0.7).sin()).collect()
}

fn extract(extractor: &WhisperFeatureExtractor, samples: &[f32]) -> Vec<f32> {
    let features: Tensor<3> = extractor.extract(samples, 1000, &device()).expect("features");
    floats(&features.to_data())
}

#[test]
fn a_batch_has_the_features_of_each_recording() {
    let (long, short) = (wave(1000), wave(10));
    let batch = extractor().extract_batch(&[&long, &short], 1000, &device()).expect("features");
    assert_eq!(batch.dims(), [2, 8, 20]);
    let each = [extract(&extractor(), &long), extract(&extractor(), &short)].concat();
    assert_eq!(floats(&batch.to_data()), each);
}

#[test]
fn silence_has_features() {
    assert_eq!(extract(&extractor(), &[0.0; 30]), vec![-1.5; 160]);
}

#[test]
fn nothing_is_dropped_unless_allowed() {
    let samples = wave(1001);
    let error = extractor().extract(&samples, 1000, &device()).expect_err("too long");
    assert!(error.to_string().starts_with("found 1001 samples, expected at most 1000, one chunk"), "{error}");
    assert_eq!(extract(&extractor().truncation(true), &samples), extract(&extractor(), &samples[..1000]));
}

#[test]
fn noise_is_added_where_the_config_asks_for_it() {
    let noisy = WhisperFeatureExtractorConfig { dither: 0.5, ..small() };
    let noisy = WhisperFeatureExtractor::new(noisy).expect("a config");
    let (first, second) = (extract(&noisy, &[0.0]), extract(&noisy, &[0.0]));
    assert_ne!(first, second);
    // Among 1000 samples of noise no spectrum is far below the loudest, in the two bins that lie below half of the rate.
    assert!(first[..40].iter().all(|value| *value > 0.0), "{first:?}");
}

#[test]
fn wrong_samples_are_refused() {
    let (extractor, device) = (extractor(), device());
    let message = |samples: &[f32], rate| extractor.extract(samples, rate, &device).expect_err("refused").to_string();
    assert_eq!(message(&[], 1000), "found no samples, expected at least one");
    let rate = "the samples have a rate of 16000 Hz, expected 1000 Hz: resample them first";
    assert_eq!(message(&[0.0], 16_000), rate);
    assert_eq!(message(&[0.0, f32::NAN], 1000), "sample 1 is NaN, expected a finite number");
    assert_eq!(message(&[f32::NEG_INFINITY], 1000), "sample 0 is -inf, expected a finite number");

    let batch = |batch: &[Vec<f32>]| extractor.extract_batch(batch, 1000, &device).expect_err("refused").to_string();
    assert_eq!(batch(&[]), "found no recordings, expected at least one");
    assert_eq!(batch(&[vec![0.0], vec![]]), "recording 1: found no samples, expected at least one");
    assert!(extract(&extractor, &[f32::MAX, f32::MIN]).iter().all(|value| value.is_finite()));
}

#[test]
fn configs_are_read_as_the_reference_writes_them() {
    let dir = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("written");
    let read = || WhisperFeatureExtractor::from_pretrained(dir.path());
    let error = read().expect_err("no file").to_string();
    assert!(error.contains("preprocessor_config.json"), "{error}");

    // `n_samples` and the filters are computed anew, `chunk_length` counts
    write(
        "preprocessor_config.json",
        r#"{"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 128, "chunk_length": 15,
            "n_samples": 480000, "nb_max_frames": 3000, "mel_filters": [[0.5]], "padding_value": 0}"#,
    );
    let extractor = read().expect("a config");
    let expected = WhisperFeatureExtractorConfig {
        feature_size: 128,
        chunk_length: 15,
        ..WhisperFeatureExtractorConfig::default()
    };
    assert_eq!(extractor.config(), &expected);
    assert_eq!((expected.n_samples(), expected.num_frames()), (240_000, 1500));

    write("processor_config.json", r#"{"processor_class": "WhisperProcessor"}"#);
    assert_eq!(read().expect("the other file").config().feature_size, 128);
    write("processor_config.json", r#"{"feature_extractor": {"feature_size": 40}}"#);
    assert_eq!(read().expect("nested").config().feature_size, 40);
}

#[test]
fn wrong_configs_are_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let message = |text: &str| {
        std::fs::write(dir.path().join("preprocessor_config.json"), text).expect("written");
        let error = WhisperFeatureExtractor::from_pretrained(dir.path()).expect_err("refused").to_string();
        assert!(error.contains("preprocessor_config.json` is not a valid config"), "{error}");
        error
    };
    for (text, expected) in [
        ("", "EOF"),
        ("[]", "at `.`"),
        (r#"{"n_fft": -1}"#, "at `n_fft`"),
        (r#"{"n_fft": 1}"#, "`n_fft` is 1, expected 2 to 959999"),
        (r#"{"n_fft": 960000}"#, "`n_fft` is 960000"),
        (r#"{"hop_length": 0}"#, "`hop_length` is 0, expected 1 to 480000"),
        (r#"{"hop_length": 480001}"#, "`hop_length` is 480001"),
        (r#"{"feature_size": 0}"#, "`feature_size` is 0"),
        (r#"{"feature_size": 18446744073709551615}"#, "`feature_size` is 18446744073709551615"),
        (r#"{"feature_size": 16384, "hop_length": 1}"#, "`feature_size` is 16384, expected at most 139"),
        (r#"{"sampling_rate": 0}"#, "`sampling_rate` is 0"),
        (r#"{"sampling_rate": 4294967295}"#, "`sampling_rate` is 4294967295"),
        (r#"{"chunk_length": 0}"#, "`chunk_length` is 0"),
        (r#"{"chunk_length": 18446744073709551615}"#, "`chunk_length` is 18446744073709551615"),
        (r#"{"padding_value": 1e39}"#, "`padding_value` is inf, expected a finite number"),
        (r#"{"dither": -1}"#, "`dither` is -1, expected 0 to 1"),
        (r#"{"feature_extractor_type": "CLIPImageProcessor"}"#, "expected `WhisperFeatureExtractor`"),
    ] {
        let error = message(text);
        assert!(error.contains(expected), "{error}");
    }
    let direct = WhisperFeatureExtractor::new(WhisperFeatureExtractorConfig { hop_length: 0, ..small() });
    assert!(matches!(direct, Err(AudioError::Config(_))));
}

/// As many cases as usual; a failing one is printed with its values and kept nowhere.
fn property() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(property())]

    /// Whatever the config says, it is refused or features come out.
    #[test]
    fn any_config_gives_features_or_an_error(
        feature_size in 0..40_usize, sampling_rate in 0..400_u32, hop_length in 0..500_usize, chunk_length in 0..4_usize,
        n_fft in 0..900_usize, count in 1..1200_usize,
    ) {
        let config = WhisperFeatureExtractorConfig {
            feature_size, sampling_rate, hop_length, chunk_length, n_fft, ..WhisperFeatureExtractorConfig::default()
        };
        let frames = config.num_frames();
        if let Ok(extractor) = WhisperFeatureExtractor::new(config) {
            let features = extractor.truncation(true).extract(&wave(count), sampling_rate, &device()).expect("features");
            prop_assert_eq!(features.dims(), [1, feature_size, frames]);
            prop_assert!(floats(&features.to_data()).iter().all(|value| value.is_finite()));
        }
    }
}

fn write_wav(path: &Path, channels: u16, bits: u16, format: SampleFormat, samples: &[f32]) {
    let spec = WavSpec { channels, sample_rate: 8000, bits_per_sample: bits, sample_format: format };
    let mut writer = WavWriter::create(path, spec).expect("a file");
    for sample in samples {
        match format {
            SampleFormat::Float => writer.write_sample(*sample).expect("written"),
            SampleFormat::Int => {
                let whole = f64::from(*sample) * 2.0_f64.powi(i32::from(bits) - 1);
                writer.write_sample(whole as i32).expect("written");
            }
        }
    }
    writer.finalize().expect("written");
}

#[test]
fn wav_files_of_all_kinds_are_read() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("a.wav");
    for (bits, format) in
        [8, 16, 24, 32].map(|bits| (bits, SampleFormat::Int)).into_iter().chain([(32, SampleFormat::Float)])
    {
        write_wav(&path, 1, bits, format, &[0.0, 0.5, -0.25, -1.0]);
        let audio = read_wav(&path).expect("a WAV file");
        assert_eq!((audio.sampling_rate, audio.samples), (8000, vec![0.0, 0.5, -0.25, -1.0]), "{bits} bits");
        write_wav(&path, 2, bits, format, &[0.0, 0.5, -0.25, -0.75]);
        assert_eq!(read_wav(&path).expect("a WAV file").samples, [0.25, -0.5], "{bits} bits");
    }
}

#[test]
fn files_that_are_no_wav_files_are_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("a.wav");
    assert!(matches!(read_wav(&path), Err(AudioError::Read(_))), "absent");
    let error = read_wav(dir.path()).expect_err("a folder").to_string();
    assert!(error.ends_with("is not a regular file"), "{error}");

    write_wav(&path, 2, 16, SampleFormat::Int, &[0.5; 8]);
    let bytes = std::fs::read(&path).expect("read");
    for length in 0..bytes.len() {
        std::fs::write(&path, &bytes[..length]).expect("written");
        let error = read_wav(&path).expect_err("cut off");
        assert!(matches!(error, AudioError::Wav { .. }), "{length}");
        assert!(error.to_string().starts_with("cannot read `"), "{error}");
    }
}

proptest! {
    #![proptest_config(property())]

    /// A header that lies is an error or gives samples, and takes no memory for samples that are not there.
    #[test]
    fn damaged_wav_files_do_no_harm(damage in prop::collection::vec((0..60_usize, any::<u8>()), 1..4)) {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("a.wav");
        write_wav(&path, 2, 16, SampleFormat::Int, &[0.5; 8]);
        let mut bytes = std::fs::read(&path).expect("read");
        for (at, value) in damage {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        std::fs::write(&path, bytes).expect("written");
        if let Ok(audio) = read_wav(&path) {
            prop_assert!(audio.samples.len() <= 16);
        }
    }
}
