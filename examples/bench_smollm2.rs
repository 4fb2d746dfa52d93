//! Our side and the reference's in one run, taking turns: ratios of medians on SmolLM2-135M, two threads.
//!
//! ```text
//! cargo run --release --example bench_smollm2 -- MODEL_DIR [--python PYTHON] [--rounds N]
//! ```
//!
//! `PYTHON` is an interpreter with torch and transformers; without it only our side is measured. The first lines
//! tell what loading costs in time and memory, measured before anything else ran.

use burn::tensor::Device;
use burn_models::llama::LlamaForCausalLM;
use burn_models::{LogitsToKeep, TextInputs};
use patching_core::prelude::*;
use side_by_side::{Error, PAUSE, Reference, TOKENS, ids, median, milliseconds};

mod side_by_side;

/// Resident memory and its peak, in MB.
fn memory() -> (f64, f64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0");
        line.split_whitespace().next().and_then(|kb| kb.parse::<f64>().ok()).unwrap_or(0.0) * 1024.0 / 1e6
    };
    (field("VmRSS:"), field("VmHWM:"))
}

fn load(folder: &str, implementation: &str) -> Result<LlamaForCausalLM, Error> {
    let options = patching_core::weights::LoadOptions::new().attn_implementation(implementation);
    Ok(LlamaForCausalLM::from_pretrained_with(folder, &Device::flex(), &options)?.0)
}

#[allow(clippy::print_stdout, reason = "it reports measurements")]
fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| arguments.iter().position(|a| a == name).and_then(|at| arguments.get(at + 1)).cloned();
    let folder = arguments.first().ok_or("usage: bench_smollm2 MODEL_DIR [--python PYTHON] [--rounds N]")?.clone();
    let rounds: usize = option("--rounds").map_or(Ok(15), |n| n.parse())?;

    let (before, _) = memory();
    let (first_load, sdpa) = milliseconds(|| load(&folder, "sdpa"));
    let sdpa = sdpa?;
    let off = ForwardKwargs::new().use_cache(false);
    let (first_forward, _) = milliseconds(|| sdpa.forward(ids(0, 128), &off).map(|output| output.logits.dims()));
    let (after, peak) = memory();
    let file =
        std::fs::metadata(format!("{folder}/model.safetensors")).map_or(f64::NAN, |file| file.len() as f64 / 1e6);
    println!("first from_pretrained {first_load:.2} ms, first forward of 128 tokens {first_forward:.0} ms");
    println!(
        "memory: {before:.0} MB before, {after:.0} after, peak {peak:.0}; file {file:.0} MB, so {:.2} of it",
        (peak - before) / file
    );

    let eager = load(&folder, "eager")?;
    let mut cache = sdpa.forward(ids(0, 128), &off.clone().use_cache(true))?.cache;
    let mut tokens = 0;
    let hidden_states = off.clone().output_hidden_states(true);
    let attentions = off.clone().output_attentions(true);
    let last = |n: usize| TextInputs::new(ids(128 + n, 129 + n)).logits_to_keep(LogitsToKeep::Last(1));

    let names = ["prefill", "prefill_eager", "prefill_hidden_states", "prefill_eager_attentions", "decode", "load"];
    let mut ours = vec![Vec::new(); names.len()];
    let mut theirs = vec![Vec::new(); names.len()];
    let mut reference = option("--python").map(|python| Reference::start(&python, &folder)).transpose()?;
    for round in 0..rounds + 2 {
        for (n, name) in names.iter().enumerate() {
            std::thread::sleep(PAUSE);
            let (time, result) = match *name {
                "prefill" => milliseconds(|| sdpa.forward(ids(0, 128), &off).map(drop)),
                "prefill_eager" => milliseconds(|| eager.forward(ids(0, 128), &off).map(drop)),
                "prefill_hidden_states" => milliseconds(|| sdpa.forward(ids(0, 128), &hidden_states).map(drop)),
                "prefill_eager_attentions" => milliseconds(|| eager.forward(ids(0, 128), &attentions).map(drop)),
                "decode" => {
                    // a run of tokens, as in generation
                    let mut times = Vec::new();
                    for _ in 0..TOKENS {
                        let inputs = last(tokens).cache(cache.take());
                        tokens += 1;
                        let (time, output) = milliseconds(|| sdpa.forward(inputs, &off.clone().use_cache(true)));
                        cache = output?.cache;
                        times.push(time);
                    }
                    (median(&times), Ok(()))
                }
                _ => {
                    let (time, model) = milliseconds(|| load(&folder, "sdpa"));
                    model?;
                    (time, Ok(()))
                }
            };
            result?;
            std::thread::sleep(PAUSE);
            let theirs_now = reference.as_mut().map(|reference| reference.run(name)).transpose()?;
            // the first rounds warm up
            if round >= 2 {
                ours[n].push(time);
                theirs[n].extend(theirs_now);
            }
        }
    }
    println!("\n{:26} {:>10} {:>12} {:>14}", "", "ours, ms", "reference", "ours/reference");
    for (n, name) in names.iter().enumerate() {
        let (a, b) = (median(&ours[n]), median(&theirs[n]));
        println!("{name:26} {a:10.2} {b:12.2} {:14.3}", a / b);
    }
    let ratio = |a: usize, b: usize| {
        // pairs of one round: what the machine did meanwhile mostly cancels
        let pairs: Vec<f64> = ours[a].iter().zip(&ours[b]).map(|(a, b)| a / b).collect();
        (median(&ours[a]) / median(&ours[b]), median(&pairs))
    };
    for (what, (a, b)) in [
        ("all hidden states on / off", (2, 0)),
        ("all attentions on / eager", (3, 1)),
        ("prefill / reference's faster path", (0, 0)),
    ] {
        let (medians, paired) = ratio(a, b);
        if a != b {
            println!("{what}: {medians:.3} (median of pairs {paired:.3})");
        } else if !theirs[0].is_empty() {
            println!("{what}: {:.3}", median(&ours[0]) / median(&theirs[0]).min(median(&theirs[1])));
        }
    }
    Ok(())
}
