//! Where the memory of loaded parameters lies, and what it costs to get it there.

use std::fs;
use std::time::Instant;

use burn::module::Module;
use burn::nn::{Embedding, EmbeddingConfig, Linear, LinearConfig};
use burn::tensor::Device;
use patching_core::class::Init;
use patching_core::weights::{LoadOptions, PreTrainedModel, ReadMode};

use crate::support::ToyConfig;

#[derive(Module, Debug)]
struct Large {
    embed_tokens: Embedding,
    layers: Vec<Linear>,
    lm_head: Linear,
    #[module(skip)]
    config: ToyConfig,
}

const WIDTH: usize = 1024;
const LAYERS: usize = 24;

impl PreTrainedModel for Large {
    type Config = ToyConfig;
    const CLASS_NAME: &'static str = "Large";
    const BASE_MODEL_PREFIX: &'static str = "model";

    fn new(config: &ToyConfig, init: &Init) -> Self {
        let linear = LinearConfig::new(WIDTH, WIDTH).with_bias(false);
        Self {
            embed_tokens: EmbeddingConfig::new(WIDTH, WIDTH).init(init.device()),
            layers: (0..LAYERS).map(|_| linear.init(init.device())).collect(),
            lm_head: linear.init(init.device()),
            config: config.clone(),
        }
    }

    fn config(&self) -> &ToyConfig {
        &self.config
    }

    fn tied_parameters(_: &ToyConfig) -> Vec<(String, String)> {
        vec![("lm_head.weight".into(), "embed_tokens.weight".into())]
    }
}

/// Memory of this process that is not backed by a file, in bytes.
#[cfg(target_os = "linux")]
fn anonymous() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("Linux has it");
    let kilobytes: u64 = line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number");
    kilobytes * 1024
}

/// One test, since the memory is that of the process and the tests of a program run side by side.
#[test]
#[cfg(target_os = "linux")]
#[ignore = "measures the whole process: run alone with `--ignored --test-threads 1`"]
fn a_mapped_model_takes_no_memory_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let size = {
        let values = vec![0.5_f32; WIDTH * WIDTH];
        let names: Vec<_> = (0..LAYERS).map(|layer| format!("layers.{layer}.weight")).collect();
        let shape: &[usize] = &[WIDTH, WIDTH];
        let mut all: Vec<(&str, &[usize], &[f32])> =
            names.iter().map(|name| (name.as_str(), shape, &values[..])).collect();
        all.push(("embed_tokens.weight", shape, &values));
        let file = crate::support::file_of(&all);
        fs::write(folder.path().join("model.safetensors"), &file).expect("writes");
        file.len() as u64
    };
    let load = |mode| {
        let model = Large::new(&ToyConfig::small(), &Init::new(&Device::flex()));
        let (before, start) = (anonymous(), Instant::now());
        let options = LoadOptions::new().read_mode(mode);
        let (model, _) = model.load_weights_with(folder.path(), &options).expect("loads");
        let (taken, time) = (anonymous().saturating_sub(before), start.elapsed());
        eprintln!("{mode:?}: {size} bytes in {time:?}, {taken} bytes of memory");
        (model, taken)
    };
    let (mapped, taken) = load(ReadMode::Map);
    assert!(taken < size / 10, "{taken} of {size}");
    let sum = mapped.lm_head.weight.val().sum().into_data().try_to_vec::<f32>().expect("floats");
    assert_eq!(sum, [(WIDTH * WIDTH) as f32 * 0.5]);
    drop(mapped);

    // Read, the tied parameter is there once.
    let (_read, taken) = load(ReadMode::Read);
    assert!(taken < size + size / 10, "{taken} of {size}");

    // Saving takes a tensor at a time.
    let (mapped, _) = load(ReadMode::Map);
    let before = anonymous();
    mapped.save_pretrained(folder.path()).expect("saves");
    let taken = anonymous().saturating_sub(before);
    assert!(taken < size / 4, "{taken} of {size}");
}
