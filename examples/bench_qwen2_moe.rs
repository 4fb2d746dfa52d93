//! A mixture of experts against the reference, taking turns: ratios of medians for each implementation of experts, two
//! threads.
//!
//! ```text
//! cargo run --release --example bench_qwen2_moe -- MODEL_DIR [--python PYTHON] [--rounds N]
//! ```
//!
//! `MODEL_DIR` is a Qwen2-MoE in f32, `PYTHON` an interpreter with torch and transformers; without it only our side is
//! measured. What counts is our default against the fastest of the reference.

use burn::tensor::Device;
use burn_models::layers::Cache;
use burn_models::qwen2_moe::Qwen2MoeForCausalLM;
use burn_models::{LogitsToKeep, TextInputs};
use patching_core::prelude::*;
use side_by_side::{Error, PAUSE, Reference, TOKENS, ids, median, milliseconds};

mod side_by_side;

/// The default first.
const EXPERTS: [&str; 3] = ["grouped_mm", "eager", "batched_mm"];
/// Tokens of the prompt.
const PROMPT: usize = 128;

/// Our side: one model and a cache that holds the prompt.
struct Ours {
    model: Qwen2MoeForCausalLM,
    prompt: Option<Cache>,
}

impl Ours {
    fn new(folder: &str) -> Result<Self, Error> {
        let model = Qwen2MoeForCausalLM::from_pretrained(folder, &Device::flex())?;
        let prompt = model.forward(ids(0, PROMPT), &ForwardKwargs::new().use_cache(true))?.cache;
        Ok(Self { model, prompt })
    }

    fn prefill(&self, kwargs: &ForwardKwargs) -> Result<f64, Error> {
        let (time, output) = milliseconds(|| self.model.forward(ids(0, PROMPT), kwargs).map(drop));
        output?;
        Ok(time)
    }

    /// A run of tokens after the prompt, as in generation.
    fn decode(&self) -> Result<f64, Error> {
        let kwargs = ForwardKwargs::new().use_cache(true);
        let mut cache = self.prompt.clone();
        let mut times = Vec::new();
        for at in PROMPT..PROMPT + TOKENS {
            let inputs = TextInputs::new(ids(at, at + 1)).logits_to_keep(LogitsToKeep::Last(1)).cache(cache.take());
            let (time, output) = milliseconds(|| self.model.forward(inputs, &kwargs));
            cache = output?.cache;
            times.push(time);
        }
        Ok(median(&times))
    }

    /// What `name` names: `prefill`, `decode` or `prefill_router_logits`, and the implementation of experts.
    fn run(&mut self, name: &str, experts: &str) -> Result<f64, Error> {
        self.model.set_experts_implementation(experts)?;
        let off = ForwardKwargs::new().use_cache(false);
        match name {
            "decode" => self.decode(),
            "prefill_router_logits" => self.prefill(&off.output_router_logits(true)),
            _ => self.prefill(&off),
        }
    }
}

#[allow(clippy::print_stdout, reason = "it reports measurements")]
fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| arguments.iter().position(|a| a == name).and_then(|at| arguments.get(at + 1)).cloned();
    let folder = arguments.first().ok_or("usage: bench_qwen2_moe MODEL_DIR [--python PYTHON] [--rounds N]")?.clone();
    let rounds: usize = option("--rounds").map_or(Ok(9), |n| n.parse())?;

    let mut ours = Ours::new(&folder)?;
    let mut reference = option("--python").map(|python| Reference::start(&python, &folder)).transpose()?;
    let runs: Vec<(&str, &str)> = ["prefill", "prefill_router_logits", "decode"]
        .into_iter()
        .flat_map(|name| EXPERTS.map(|experts| (name, experts)))
        // a copy of the weights for each token of a prompt says nothing that is not known
        .filter(|(name, experts)| *experts != "batched_mm" || *name == "decode")
        .collect();
    let mut times = vec![(Vec::new(), Vec::new()); runs.len()];
    for round in 0..rounds + 1 {
        for ((name, experts), (of_ours, of_theirs)) in runs.iter().zip(&mut times) {
            std::thread::sleep(PAUSE);
            let time = ours.run(name, experts)?;
            std::thread::sleep(PAUSE);
            let theirs = reference.as_mut().map(|theirs| theirs.run(&format!("{name}.{experts}"))).transpose()?;
            // the first round warms up
            if round > 0 {
                of_ours.push(time);
                of_theirs.extend(theirs);
            }
        }
    }
    println!("{:34} {:>10} {:>12} {:>14}", "", "ours, ms", "reference", "ours/reference");
    for ((name, experts), (ours, theirs)) in runs.iter().zip(&times) {
        let (a, b) = (median(ours), median(theirs));
        println!("{:34} {a:10.2} {b:12.2} {:14.3}", format!("{name}, {experts}"), a / b);
    }
    for name in ["prefill", "decode"] {
        let of_name = || runs.iter().zip(&times).filter(|((run, _), _)| *run == name);
        let ours = of_name().map(|(_, (ours, _))| median(ours)).next().unwrap_or(f64::NAN);
        let theirs = of_name().map(|(_, (_, theirs))| median(theirs)).fold(f64::INFINITY, f64::min);
        println!("{name}: our default / the fastest of the reference: {:.3}", ours / theirs);
    }
    Ok(())
}
