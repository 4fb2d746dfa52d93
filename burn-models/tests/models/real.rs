//! Real checkpoints, where they are present: `BURN_MODELS_REAL=folder cargo test -- --ignored`.

use crate::support::{Case, device, flat, ids, tensors};
use burn::tensor::{DType, FloatDType, Int, Tensor};
use burn_models::TextInputs;
use burn_models::auto::{AnyModel, AutoModelForCausalLM, ModelClass, NamedInputs};
use burn_models::generation::GenerationConfig;
use patching_core::prelude::*;
use patching_core::weights::LoadOptions;
use serde::Deserialize;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
struct Record {
    prompt: Vec<Vec<i64>>,
    mask: Vec<Vec<i64>>,
    generated: Vec<Vec<i64>>,
    top_tokens: Vec<Vec<usize>>,
    top_logits: Vec<Vec<f32>>,
    hidden_norms: Vec<f32>,
    attention_first_token: Vec<f32>,
}

fn rows(values: &[Vec<i64>]) -> Tensor<2, Int> {
    let flat = values.concat();
    Tensor::<1, Int>::from_data(flat.as_slice(), (&device(), DType::I64)).reshape([values.len() as i32, -1])
}

fn check(name: &str) {
    let folder = std::env::var_os("BURN_MODELS_REAL").expect("BURN_MODELS_REAL names the folder of checkpoints");
    let folder = PathBuf::from(folder).join(name);
    let record = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(format!("{name}.json"));
    let record = std::fs::read_to_string(record).expect("a record");
    let record: Record = serde_json::from_str(&record).expect("a valid record");

    let options = LoadOptions::new().dtype(FloatDType::F32);
    let (model, report) = AutoModelForCausalLM::from_pretrained_with(&folder, &device(), &options).expect("loads");
    assert!(report.missing.is_empty() && report.unexpected.is_empty());
    let inputs = || TextInputs::new(rows(&record.prompt)).attention_mask(rows(&record.mask));
    let kwargs = ForwardKwargs::new().output_hidden_states(true).output_attentions(true).use_cache(false);
    let output = model.forward(inputs(), &kwargs).expect("runs");

    let [_, seq, vocabulary] = output.logits().dims();
    let last: Vec<f32> = output.logits().clone().slice_dim(1, seq - 1..seq).to_data().iter::<f32>().collect();
    for (row, (tokens, logits)) in record.top_tokens.iter().zip(&record.top_logits).enumerate() {
        for (token, logit) in tokens.iter().zip(logits) {
            let found = last[row * vocabulary + token];
            assert!((found - logit).abs() < 1e-3, "row {row}, token {token}: {found} and {logit}");
        }
    }
    assert_eq!(output.hidden_states().len(), record.hidden_norms.len());
    for (index, _, state) in output.hidden_states().iter() {
        let norm: f32 = state.clone().slice_dim(0, 0..1).square().sum().sqrt().into_scalar();
        let expected = record.hidden_norms[index];
        assert!((norm / expected - 1.0).abs() < 1e-4, "hidden state {index}: {norm} and {expected}");
    }
    for (index, _, weights) in output.attentions().iter() {
        let weight: f32 = weights.clone().slice([0..1, 0..1, seq - 1..seq, 0..1]).into_scalar();
        let expected = record.attention_first_token[index];
        assert!((weight - expected).abs() < 1e-4, "attention {index}: {weight} and {expected}");
    }
    let config = GenerationConfig::greedy(record.generated[0].len());
    let generated = model.generate(inputs(), &config, &ForwardKwargs::new()).expect("generates");
    assert_eq!(ids(&generated.sequences.slice_dim(1, seq..)), record.generated.concat());
}

#[test]
#[ignore = "needs the checkpoint"]
fn smollm2_135m() {
    check("smollm2-135m");
}

/// Any checkpoint, `BURN_MODELS_CHECKPOINT`, against what `make.py --checkpoint` wrote into a folder, `BURN_MODELS_RECORD`:
/// every value, within a thousandth of the largest one of its tensor.
#[test]
#[ignore = "needs a checkpoint, and what the reference says of it"]
fn recorded() {
    let named = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} names a folder"));
    let (checkpoint, record) = (PathBuf::from(named("BURN_MODELS_CHECKPOINT")), named("BURN_MODELS_RECORD"));
    let case = Case::new(record.leak());
    let class = ModelClass::named(&checkpoint, case.meta["model_class"].as_str().expect("a name")).expect("known");
    let options = LoadOptions::new().dtype(FloatDType::F32);
    let (mut model, report) = AnyModel::from_pretrained_as(&checkpoint, class, &device(), &options).expect("loads");
    assert!(report.missing.is_empty() && report.unexpected.is_empty());
    let inputs = tensors(&case.folder().join("inputs.safetensors"));
    let inputs = inputs.into_iter().fold(NamedInputs::new(), |inputs, (name, data)| inputs.with(name, data));
    for attention in ["sdpa", "eager"] {
        model.set_attn_implementation(attention).expect("built in");
        // a fused implementation has no weights to give
        let is_fused = attention == "sdpa";
        let kwargs = if is_fused { case.kwargs().output("attentions", false) } else { case.kwargs() };
        let found = flat(&model.forward(&inputs, &device(), &kwargs).expect("runs"));
        let mut all = case.expected("outputs.safetensors");
        all.retain(|key, _| !(is_fused && key.contains("attentions")));
        for (key, expected) in all {
            let found = found.get(&key).unwrap_or_else(|| panic!("{key} is missing"));
            assert_eq!(found.shape(), expected.shape(), "{key}");
            let largest = expected.iter::<f32>().map(f32::abs).fold(0.0, f32::max);
            let apart = found.iter::<f32>().zip(expected.iter::<f32>()).map(|(a, b)| (a - b).abs());
            let worst = apart.fold(0.0, |worst: f32, apart| if apart.is_nan() { apart } else { worst.max(apart) });
            println!("{attention} {key}: {worst:.1e} apart, largest {largest:.1e}");
            assert!(worst <= 1e-3 * largest, "{key}: {worst} apart, of at most {largest}");
        }
    }
}
