//! Constructing under registered patches, and turning a checkpoint's single experts into fused ones, against the
//! reference, taking turns.
//!
//! ```text
//! cargo run --release --example bench_patching -- MODEL_DIR [--python PYTHON] [--rounds N]
//! ```
//!
//! `MODEL_DIR` is a Llama whose config is constructed. Two checkpoints of experts are made first, in temporary folders:
//! 8 layers of 64 experts each, 1,536 tensors that become 16, of 64 KB and of 512 KB a tensor.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor};
use burn_models::llama::{LlamaConfig, LlamaForCausalLM, LlamaMLP};
use burn_models::qwen2_moe::{Qwen2MoeConfig, Qwen2MoeForCausalLM};
use burnlens::prelude::*;
use patching_core::patch::original;
use patching_core::weights::LoadOptions;
use side_by_side::{Error, PAUSE, Reference, median, milliseconds};
use std::path::Path;

mod side_by_side;

/// Patterns that are registered and match nothing.
const PATTERNS: usize = 100;
/// Constructions in one turn; their mean counts.
const TIMES: usize = 20;

/// A mixture of experts of this hidden size.
fn experts(hidden: usize) -> Result<Qwen2MoeConfig, Error> {
    let text = format!(
        r#"{{
            "model_type": "qwen2_moe", "hidden_size": {hidden}, "intermediate_size": {hidden},
            "moe_intermediate_size": {half}, "shared_expert_intermediate_size": {half}, "num_hidden_layers": 8,
            "num_attention_heads": 8, "num_key_value_heads": 8, "num_experts": 64, "num_experts_per_tok": 4,
            "vocab_size": 1024, "max_position_embeddings": 128
        }}"#,
        half = hidden / 2
    );
    Ok(Qwen2MoeConfig::from_json(&text)?)
}

/// A checkpoint of it, in the published layout.
fn checkpoint(hidden: usize) -> Result<tempfile::TempDir, Error> {
    let folder = tempfile::tempdir()?;
    let model = Qwen2MoeForCausalLM::from_config(&experts(hidden)?, &Device::flex())?;
    println!("{}", model.save_pretrained(folder.path())?);
    Ok(folder)
}

/// Mean milliseconds of a construction.
fn construct(config: &LlamaConfig) -> Result<f64, Error> {
    let (time, constructed) =
        milliseconds(|| (0..TIMES).try_for_each(|_| LlamaForCausalLM::from_config(config, &Device::flex()).map(drop)));
    constructed?;
    Ok(time / TIMES as f64)
}

fn construct_patched(config: &LlamaConfig) -> Result<f64, Error> {
    register_patch_mapping((0..PATTERNS).map(|n| (format!("^Nothing{n}.*$"), original())))?;
    let time = construct(config);
    clear_patch_mapping();
    time
}

/// The most memory that this process has had so far, and what it has now, in MB; where the system tells.
fn memory() -> Option<(f64, f64)> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = |name: &str| -> Option<f64> {
        status.lines().find(|line| line.starts_with(name))?.split_whitespace().nth(1)?.parse().ok()
    };
    Some((kilobytes("VmHWM:")? / 1e3, kilobytes("VmRSS:")? / 1e3))
}

/// Makes every parameter that is put together: it is so when it is first used.
fn use_all(model: &Qwen2MoeForCausalLM) {
    struct Use;
    impl ModuleVisitor for Use {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let _ = param.val();
        }
    }
    model.visit(&mut Use);
}

/// Loads the experts in a process of its own, which reports its memory.
fn load_alone(folder: &str) -> Result<(), Error> {
    let before = memory().map_or(f64::NAN, |(_, now)| now);
    let (model, report) = Qwen2MoeForCausalLM::from_pretrained_with(folder, &Device::flex(), &LoadOptions::new())?;
    use_all(&model);
    let (peak, after) = memory().unwrap_or((f64::NAN, f64::NAN));
    println!(
        "memory: {before:.0} MB before, {after:.0} after, {peak:.0} at most; the parameters are {:.0} MB, {} of them joined",
        report.bytes as f64 / 1e6,
        report.converted.len()
    );
    drop(model);
    Ok(())
}

#[allow(clippy::print_stdout, reason = "it reports measurements")]
fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| arguments.iter().position(|a| a == name).and_then(|at| arguments.get(at + 1)).cloned();
    if let Some(folder) = option("--load-alone") {
        return load_alone(&folder);
    }
    let folder = arguments.first().ok_or("usage: bench_patching MODEL_DIR [--python PYTHON] [--rounds N]")?.clone();
    let rounds: usize = option("--rounds").map_or(Ok(9), |n| n.parse())?;

    let checkpoints = [checkpoint(176)?, checkpoint(512)?];
    let paths = [0, 1].map(|at: usize| checkpoints[at].path().display().to_string());

    let start = |folder: &str| {
        option("--python").map(|python| Reference::start_with(&python, &[folder, "patching"])).transpose()
    };
    let mut references = [start(&folder)?, start(&paths[0])?, start(&paths[1])?];
    let config = LlamaConfig::from_pretrained(&folder)?;
    // what the patches are to find is there
    assert!(patching_core::class::known_classes().any(|class| class.name == <LlamaMLP as ModuleClass>::NAME));

    let load = |folder: &Path, used: bool| -> Result<f64, Error> {
        let (time, model) = milliseconds(|| {
            let model = Qwen2MoeForCausalLM::from_pretrained(folder, &Device::flex())?;
            if used {
                use_all(&model);
            }
            Ok::<_, Error>(model)
        });
        model?;
        Ok(time)
    };
    // the last two: against the reference's load again, whose parameters are made by then
    let runs = [("construct", 0), ("construct_patched", 0), ("load", 1), ("load", 2), ("used", 1), ("used", 2)];
    let mut times = vec![(Vec::new(), Vec::new()); runs.len()];
    for round in 0..=rounds {
        for ((name, of), (ours, theirs)) in runs.into_iter().zip(&mut times) {
            std::thread::sleep(PAUSE);
            let time = match name {
                "construct" => construct(&config)?,
                "construct_patched" => construct_patched(&config)?,
                _ => load(checkpoints[of - 1].path(), name == "used")?,
            };
            let name = if name == "used" { "load" } else { name };
            let of_reference = references[of].as_mut().map(|reference| reference.run(name)).transpose()?;
            // the first round warms up
            if round > 0 {
                ours.push(time);
                theirs.extend(of_reference);
            }
        }
    }
    println!("{:52} {:>10} {:>12} {:>14}", "", "ours, ms", "reference", "ours/reference");
    let load_of = |size| format!("load, 1,536 expert tensors of {size} into 16");
    let used = |size| format!("the same of {size}, and each parameter used once");
    let names = [
        "construct".to_owned(),
        format!("construct under {PATTERNS} patterns"),
        load_of("64 KB"),
        load_of("512 KB"),
        used("64 KB"),
        used("512 KB"),
    ];
    for (name, (ours, theirs)) in names.into_iter().zip(&times) {
        let (a, b) = (median(ours), median(theirs));
        println!("{name:52} {a:10.3} {b:12.2} {:14.5}", a / b);
    }
    let [(ours, theirs), (ours_patched, theirs_patched), ..] = times.as_slice() else { return Ok(()) };
    let ratio = |patched: &[f64], without: &[f64]| median(patched) / median(without);
    println!(
        "under {PATTERNS} patterns / without: ours {:.3}, reference {:.3}",
        ratio(ours_patched, ours),
        ratio(theirs_patched, theirs)
    );

    let alone = std::process::Command::new(std::env::current_exe()?).args(["--load-alone", &paths[1]]).status()?;
    if alone.success() { Ok(()) } else { Err("loading in a process of its own failed".into()) }
}
