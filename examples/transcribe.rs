//! Writes down what is said in a recording, and when: each word with the time that the decoder listened to while it wrote
//! it, by the cross-attention of every step.
//!
//! `cargo run --release --example transcribe -- FOLDER FILE.wav`, with the folder of a Whisper checkpoint; without
//! arguments, a tiny model with random weights writes down a made-up sound.

use burn::prelude::*;
use burnlens::burn_models::Seq2SeqLMOutput;
use burnlens::burn_models::audio::{Audio, WhisperFeatureExtractor, WhisperFeatureExtractorConfig, read_wav};
use burnlens::burn_models::generation::{GenerateOutput, GenerationConfig};
use burnlens::burn_models::whisper::WhisperForConditionalGeneration;
use burnlens::prelude::*;
use std::error::Error;
use std::path::Path;
use tokenizers::Tokenizer;

/// How many seconds a position of the encoder stands for.
const POSITION: f64 = 0.02;

pub fn main() -> Result<(), Box<dyn Error>> {
    // as a test, the arguments are those of the test
    let arguments: Vec<String> = std::env::args().skip(1).filter(|_| !cfg!(test)).collect();
    match arguments.as_slice() {
        [] => tiny_model(),
        [folder, recording] => transcribe(Path::new(folder), Path::new(recording)),
        _ => Err("expected the folder of a checkpoint and a WAV file, or nothing".into()),
    }
}

fn transcribe(folder: &Path, recording: &Path) -> Result<(), Box<dyn Error>> {
    let device = Device::flex();
    let model = WhisperForConditionalGeneration::from_pretrained(folder, &device)?;
    let config = GenerationConfig::from_pretrained(folder)?;
    let tokenizer = Tokenizer::from_file(folder.join("tokenizer.json")).map_err(|error| error.to_string())?;

    let Audio { samples, sampling_rate } = read_wav(recording)?;
    let features = WhisperFeatureExtractor::from_pretrained(folder)?.extract(&samples, sampling_rate, &device)?;
    let kwargs = ForwardKwargs::new().output("cross_attentions", true);
    let output = model.generate(features, &config, &kwargs)?;

    let heads = alignment_heads(&config);
    let tokens = output.new_tokens.first().ok_or("nothing was written")?;
    let mut words: Vec<Word> = Vec::new();
    for (token, step) in tokens.iter().zip(&output.steps) {
        let text = tokenizer.decode(&[u32::try_from(*token)?], true).map_err(|error| error.to_string())?;
        if text.is_empty() {
            // the end
            continue;
        }
        let looks = looks(step, &heads)?;
        match words.last_mut() {
            Some(word) if !text.starts_with(' ') => word.add(*token, looks),
            _ => words.push(Word { tokens: vec![*token], looks }),
        }
    }
    for word in &words {
        let ids: Vec<u32> = word.tokens.iter().map(|token| u32::try_from(*token)).collect::<Result<_, _>>()?;
        let text = tokenizer.decode(&ids, true).map_err(|error| error.to_string())?;
        println!("{:6.2} s {text}", word.time()?);
    }
    let all: Vec<u32> = tokens.iter().map(|token| u32::try_from(*token)).collect::<Result<_, _>>()?;
    println!("{}", tokenizer.decode(&all, true).map_err(|error| error.to_string())?.trim());
    Ok(())
}

/// Tokens that are one word, and how much the decoder looked at each position while it wrote them.
struct Word {
    tokens: Vec<i64>,
    looks: Tensor<1>,
}

impl Word {
    fn add(&mut self, token: i64, looks: Tensor<1>) {
        self.tokens.push(token);
        self.looks = self.looks.clone() + looks;
    }

    /// The time that was looked at most, in seconds.
    fn time(&self) -> Result<f64, Box<dyn Error>> {
        let position: i64 = self.looks.clone().argmax(0).into_scalar();
        Ok(position as f64 * POSITION)
    }
}

/// The layers and heads that follow the sound, where the checkpoint says which; none: all.
fn alignment_heads(config: &GenerationConfig) -> Vec<[usize; 2]> {
    let heads = config.extra.get("alignment_heads").cloned().unwrap_or_default();
    serde_json::from_value(heads).unwrap_or_default()
}

/// How much the last query of a step looks at each position, `[positions]`: the mean of the heads.
fn looks(step: &Seq2SeqLMOutput, heads: &[[usize; 2]]) -> Result<Tensor<1>, Box<dyn Error>> {
    let mut sum: Option<Tensor<1>> = None;
    for (layer, _, weights) in step.cross_attentions.iter() {
        let [_, count, queries, positions] = weights.dims();
        for head in 0..count {
            if heads.is_empty() || heads.contains(&[layer, head]) {
                let row = weights.clone().slice([0..1, head..head + 1, queries - 1..queries, 0..positions]);
                let row = row.reshape([positions]);
                sum = Some(sum.map_or(row.clone(), |sum| sum + row));
            }
        }
    }
    sum.ok_or_else(|| "no cross-attention was recorded".into())
}

/// The same with a model that is small enough to lie in the repository: its words mean nothing, and have no text.
fn tiny_model() -> Result<(), Box<dyn Error>> {
    let device = Device::flex();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("burn-models/tests/fixtures/whisper");
    let model = WhisperForConditionalGeneration::from_pretrained(&folder, &device)?;

    // it hears 24 frames of 8 bands
    let config = WhisperFeatureExtractorConfig {
        feature_size: 8,
        sampling_rate: 24 * 160,
        chunk_length: 1,
        ..WhisperFeatureExtractorConfig::default()
    };
    let rate = config.sampling_rate;
    let tone: Vec<f32> = (0..rate / 2).map(|at| (at as f32 * 0.4).sin() * at as f32 / rate as f32).collect();
    let features = WhisperFeatureExtractor::new(config)?.extract(&tone, rate, &device)?;
    assert_eq!(features.dims(), [1, 8, 24]);

    let kwargs = ForwardKwargs::new().output("cross_attentions", true);
    let output: GenerateOutput<Seq2SeqLMOutput> = model.generate(features, &GenerationConfig::greedy(6), &kwargs)?;
    let tokens = output.new_tokens.first().ok_or("nothing was written")?;
    assert_eq!(output.steps.len(), tokens.len());
    for (token, step) in tokens.iter().zip(&output.steps) {
        let looks = looks(step, &[])?;
        assert_eq!(looks.dims(), [12]);
        println!("{:6.2} s token {token}", Word { tokens: vec![*token], looks }.time()?);
    }
    Ok(())
}
