//! Trains the tiny decoder in `models/tiny-decoder`: a Llama of two layers that learns to continue a repeated sequence.
//!
//! ```text
//! cargo run --release --no-default-features --features flex,train --example train_tiny_decoder [-- FOLDER]
//! ```
//!
//! The data are random letters, a block of which repeats, so the model cannot learn by heart what comes next. It finds
//! the way that every larger language model finds as well: a head of layer 0 copies to each token what stood before
//! it, and a head of layer 1 looks for a token that stood after the same one before. The second is called an induction
//! head. The program prints how much attention they give to what they should look at.
//!
//! It takes 40 seconds on two cores, and gives the same weights each time on the same machine.

mod data;
mod scores;

use burn::module::Module;
use burn::optim::{AdamWConfig, GradientsParams};
use burn::tensor::Device;
use burnlens::burn_models::TextInputs;
use burnlens::burn_models::generation::GenerationConfig;
use burnlens::burn_models::llama::{LlamaConfig, LlamaForCausalLM};
use burnlens::prelude::*;
use data::{Sequence, Source};
use scores::{Scores, rows, token_tensor};
use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

const SEED: u64 = 7;
const STEPS: usize = 1500;
const BATCH: usize = 32;
const LENGTH: usize = 48;
const LEARNING_RATE: f64 = 3e-3;
/// The id of `<pad>`.
const PAD: i64 = 0;
/// The label of a position where no token is expected.
const IGNORED: i64 = -100;
/// Steps until the learning rate is reached.
const WARM_UP: usize = 100;

fn config() -> LlamaConfig {
    let mut config = LlamaConfig {
        vocab_size: data::VOCABULARY,
        hidden_size: 64,
        intermediate_size: 128,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        num_key_value_heads: Some(4),
        max_position_embeddings: 64,
        pad_token_id: Some(PAD),
        bos_token_id: Some(data::BEGIN),
        eos_token_id: None,
        ..LlamaConfig::default()
    };
    // Who runs it wants to see something.
    for key in ["hidden_states", "attentions"] {
        config.general.set_output(key, true);
    }
    config
}

/// Rises in a line, then falls with the cosine to nearly nothing.
fn learning_rate(step: usize) -> f64 {
    let rise = (step + 1) as f64 / WARM_UP as f64;
    let done = step as f64 / STEPS as f64;
    LEARNING_RATE * rise.min(0.5 * (1.0 + (std::f64::consts::PI * done).cos())).max(0.01)
}

fn batch(source: &mut Source, size: usize) -> Vec<Sequence> {
    (0..size).map(|_| source.next()).collect()
}

/// The tokens that can be foreseen: all but those of the first block and the one that begins the second.
fn labels(sequence: &Sequence) -> Vec<i64> {
    let foreseen = |at: usize| at >= sequence.period + 2;
    sequence.tokens.iter().enumerate().map(|(at, token)| if foreseen(at) { *token } else { IGNORED }).collect()
}

#[allow(clippy::print_stdout, reason = "that is how the program tells what it does")]
fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).map_or_else(default_folder, PathBuf::from);
    let plain = Device::flex();
    let device = plain.clone().autodiff();
    device.seed(SEED);

    let mut model = LlamaForCausalLM::from_config(&config(), &device)?;
    let mut optimizer = AdamWConfig::new().with_weight_decay(0.01).with_epsilon(1e-8).init();
    let mut source = Source::new(SEED, LENGTH);
    println!("{} parameters", model.num_params());

    let nothing_recorded = ForwardKwargs::new().output_hidden_states(false).output_attentions(false).use_cache(false);
    let start = Instant::now();
    for step in 0..STEPS {
        let sequences = batch(&mut source, BATCH);
        let labels = rows(sequences.iter().map(labels).collect(), &device);
        let inputs = TextInputs::new(token_tensor(&sequences, &device)).labels(labels);
        let output = model.forward(inputs, &nothing_recorded)?;
        let loss = output.loss.ok_or("labels give a loss")?;
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(learning_rate(step), model, gradients);
        if step % 100 == 99 {
            let seconds = start.elapsed().as_secs();
            println!("step {:>4}  loss {:.4}  {seconds:>3} s", step + 1, loss.into_scalar::<f32>());
        }
    }

    let model = model.valid();
    let unseen = batch(&mut Source::new(SEED + 1, LENGTH), 64);
    report(&Scores::of(&model, &unseen, &plain)?);
    save(&model, &folder)?;
    println!("saved to {}", folder.display());
    Ok(())
}

#[allow(clippy::print_stdout, reason = "that is how the program tells what it does")]
fn report(scores: &Scores) {
    println!("foresees {:.1} % of what can be foreseen in new sequences", 100.0 * scores.accuracy);
    for (what, scores) in [("the token before", &scores.previous), ("after the earlier same token", &scores.induction)]
    {
        for (layer, heads) in scores.iter().enumerate() {
            let heads: Vec<String> = heads.iter().map(|score| format!("{score:.2}")).collect();
            println!("layer {layer}, attention to {what}, by head: {}", heads.join("  "));
        }
    }
}

fn save(model: &LlamaForCausalLM, folder: &PathBuf) -> Result<(), Box<dyn Error>> {
    model.save_pretrained(folder)?;
    let generation = GenerationConfig { pad_token_id: Some(PAD), ..GenerationConfig::default() };
    let json = |value: &serde_json::Value| serde_json::to_string_pretty(value).map(|text| text + "\n");
    std::fs::write(folder.join(GenerationConfig::FILE_NAME), json(&serde_json::to_value(generation)?)?)?;
    std::fs::write(folder.join("tokenizer.json"), json(&data::tokenizer())?)?;
    Ok(())
}

fn default_folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/models/tiny-decoder"))
}
