//! Our side and the reference's in one run, taking turns, two threads: an encoder of text on a batch of 32 sentences, or an
//! encoder of speech on 30 seconds and its decoder, token by token.
//!
//! ```text
//! cargo run --release --example bench_encoders -- sentences BERT_DIR    [--python PYTHON] [--rounds N]
//! cargo run --release --example bench_encoders -- speech    WHISPER_DIR [--python PYTHON] [--rounds N]
//! ```
//!
//! `PYTHON` is an interpreter with torch and transformers; without it only our side is measured.

use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_models::bert::BertModel;
use burn_models::whisper::WhisperForConditionalGeneration;
use burn_models::{Seq2SeqInputs, SpeechInputs, TextInputs};
use patching_core::prelude::*;
use patching_core::weights::LoadOptions;
use side_by_side::{Error, PAUSE, Reference, TOKENS, median, milliseconds};

mod side_by_side;

/// Something to measure.
type Run<'a> = (&'static str, Box<dyn FnMut() -> Result<f64, Error> + 'a>);

const SENTENCES: usize = 32;
/// Tokens of the longest sentence.
const LONGEST: usize = 24;

fn timed<T, E: Into<Error>>(run: impl FnOnce() -> Result<T, E>) -> Result<f64, Error> {
    let (time, result) = milliseconds(run);
    result.map_err(Into::into)?;
    Ok(time)
}

/// The batch that the reference's side makes alike: 8 to 24 tokens each, padded.
fn sentences() -> TextInputs {
    let length = |row: usize| 8 + (row * 5) % 17;
    let cells = || (0..SENTENCES).flat_map(|row| (0..LONGEST).map(move |at| (row, at)));
    let mask: Vec<i64> = cells().map(|(row, at)| i64::from(at < length(row))).collect();
    let ids: Vec<i64> = cells().map(|(row, at)| 1000 + (row as i64 * 31 + at as i64 * 17) % 20_000).collect();
    let ids: Vec<i64> = ids.iter().zip(&mask).map(|(id, real)| id * real).collect();
    let tensor =
        |values: Vec<i64>| Tensor::<2, Int>::from_data(TensorData::new(values, [SENTENCES, LONGEST]), &Device::flex());
    TextInputs::new(tensor(ids)).attention_mask(tensor(mask))
}

fn measure_sentences(folder: &str, measure: impl FnOnce(Vec<Run<'_>>) -> Result<(), Error>) -> Result<(), Error> {
    let load = |attention: &str| {
        let options = LoadOptions::new().attn_implementation(attention);
        BertModel::from_pretrained_with(folder, &Device::flex(), &options).map(|(model, _)| model)
    };
    let (sdpa, eager) = (load("sdpa")?, load("eager")?);
    let off = ForwardKwargs::new();
    let hidden_states = off.clone().output_hidden_states(true);
    let attentions = off.clone().output_attentions(true);
    measure(vec![
        ("sentences", Box::new(|| timed(|| sdpa.forward(sentences(), &off)))),
        ("sentences_eager", Box::new(|| timed(|| eager.forward(sentences(), &off)))),
        ("sentences_hidden_states", Box::new(|| timed(|| sdpa.forward(sentences(), &hidden_states)))),
        ("sentences_eager_attentions", Box::new(|| timed(|| eager.forward(sentences(), &attentions)))),
        ("load", Box::new(|| timed(|| load("sdpa")))),
    ])
}

fn measure_speech(folder: &str, measure: impl FnOnce(Vec<Run<'_>>) -> Result<(), Error>) -> Result<(), Error> {
    let device = Device::flex();
    let model = WhisperForConditionalGeneration::from_pretrained(folder, &device)?;
    let (bins, frames) = {
        let config = model.config();
        (config.num_mel_bins, 2 * config.max_source_positions)
    };
    let values: Vec<f32> = (0..bins * frames).map(|at| (at * 37 % 101) as f32 / 50.0 - 1.0).collect();
    let features = Tensor::<3>::from_data(TensorData::new(values, [1, bins, frames]), &device);
    let off = ForwardKwargs::new();
    let encoder = &model.model.encoder;
    let encoded = encoder.forward(features.clone(), &off)?.last_hidden_state;

    let cached = off.clone().use_cache(true);
    let ids = |values: Vec<i64>| {
        let length = values.len();
        Tensor::<2, Int>::from_data(TensorData::new(values, [1, length]), &device)
    };
    let prompt = ids((0..32).map(|at| (at * 7919 + 13) % 50_000).collect());
    let inputs = || Seq2SeqInputs::<SpeechInputs>::encoded(encoded.clone());
    let begun = model.forward(inputs().decoder_input_ids(prompt), &cached)?.cache;
    let decode = || -> Result<f64, Error> {
        // a run of tokens, as in generation
        let mut cache = begun.clone();
        let mut times = Vec::new();
        for _ in 0..TOKENS {
            let step = inputs().decoder_input_ids(ids(vec![400])).cache(cache.take());
            let (time, output) = milliseconds(|| model.forward(step, &cached));
            cache = output?.cache;
            times.push(time);
        }
        Ok(median(&times))
    };
    measure(vec![
        ("encode", Box::new(|| timed(|| encoder.forward(features.clone(), &off)))),
        ("decode", Box::new(decode)),
        ("load", Box::new(|| timed(|| WhisperForConditionalGeneration::from_pretrained(folder, &device)))),
    ])
}

/// Lets both sides take turns and prints the medians.
#[allow(clippy::print_stdout, reason = "it reports measurements")]
fn take_turns(mut runs: Vec<Run<'_>>, mut reference: Option<Reference>, rounds: usize) -> Result<(), Error> {
    let (mut ours, mut theirs) = (vec![Vec::new(); runs.len()], vec![Vec::new(); runs.len()]);
    for round in 0..rounds + 2 {
        for (n, (name, run)) in runs.iter_mut().enumerate() {
            std::thread::sleep(PAUSE);
            let time = run()?;
            std::thread::sleep(PAUSE);
            let theirs_now = reference.as_mut().map(|reference| reference.run(name)).transpose()?;
            // the first rounds warm up
            if round >= 2 {
                ours[n].push(time);
                theirs[n].extend(theirs_now);
            }
        }
    }
    println!("{:26} {:>10} {:>12} {:>14}", "", "ours, ms", "reference", "ours/reference");
    for (n, (name, _)) in runs.iter().enumerate() {
        let (a, b) = (median(&ours[n]), median(&theirs[n]));
        println!("{name:26} {a:10.2} {b:12.2} {:14.3}", a / b);
    }
    Ok(())
}

fn main() -> Result<(), Error> {
    const USAGE: &str = "usage: bench_encoders sentences|speech MODEL_DIR [--python PYTHON] [--rounds N]";
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| arguments.iter().position(|a| a == name).and_then(|at| arguments.get(at + 1)).cloned();
    let [what, folder, ..] = arguments.as_slice() else { return Err(USAGE.into()) };
    let rounds: usize = option("--rounds").map_or(Ok(15), |n| n.parse())?;
    let start = |python: String| Reference::start_with(&python, &[folder, what]);
    let reference = option("--python").map(start).transpose()?;
    let measure = |runs: Vec<Run<'_>>| take_turns(runs, reference, rounds);
    match what.as_str() {
        "sentences" => measure_sentences(folder, measure),
        "speech" => measure_speech(folder, measure),
        _ => Err(USAGE.into()),
    }
}
