//! What a save writes.

use std::fs;
use std::sync::{Arc, Mutex};

use burn::tensor::{Device, FloatDType};
use patching_core::weights::{LoadOptions, PreTrainedModel, SaveError, SaveOptions};
use serde_json::Value;

use crate::support::{ToyConfig, ToyForCausalLM, file_of, fixture, ndarray, tensors, values};

fn small() -> ToyForCausalLM {
    ToyForCausalLM::from_config(&ToyConfig::small(), &Device::flex()).expect("constructs")
}

fn names(dir: &std::path::Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .expect("it lists")
        .map(|file| file.expect("it lists").file_name().into_string().expect("a name"))
        .collect();
    names.sort();
    names
}

#[test]
fn a_config_is_completed_and_sorted() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = SaveOptions::new().dtype(FloatDType::BF16);
    small().save_pretrained_with(folder.path().join("new/deep"), &options).expect("saves");
    let text = fs::read_to_string(folder.path().join("new/deep/config.json")).expect("reads");
    assert!(text.starts_with("{\n  \"architectures\": [\n    \"LlamaForCausalLM\"\n  ],\n"), "{text}");
    assert!(text.ends_with("\n}\n"));
    let config: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(config["dtype"], "bfloat16");
    assert_eq!(config["model_type"], "llama");
}

#[test]
fn a_dtype_can_be_chosen() {
    let folder = tempfile::tempdir().expect("a folder");
    for (dtype, name, size) in [(FloatDType::F16, "F16", 2), (FloatDType::BF16, "BF16", 2), (FloatDType::F64, "F64", 8)]
    {
        let report = small().save_pretrained_with(folder.path(), &SaveOptions::new().dtype(dtype)).expect("saves");
        let tensors = tensors(folder.path());
        assert!(
            tensors.values().all(|(found, shape, bytes)| {
                found == name && bytes.len() == shape.iter().product::<usize>() * size
            })
        );
        assert_eq!(report.bytes as usize, tensors.values().map(|(_, _, bytes)| bytes.len()).sum::<usize>());
    }
}

#[test]
fn extra_files_come_along_but_no_weights() {
    let from = tempfile::tempdir().expect("a folder");
    for name in ["tokenizer.json", "generation_config.json", "pytorch_model.bin", "config.json", "model.safetensors"] {
        fs::write(from.path().join(name), "theirs").expect("writes");
    }
    fs::create_dir(from.path().join("folder")).expect("makes");
    let to = tempfile::tempdir().expect("a folder");
    fs::write(to.path().join("generation_config.json"), "ours").expect("writes");

    let options = SaveOptions::new().copy_extra_files_from(from.path());
    let report = small().save_pretrained_with(to.path(), &options).expect("saves");
    assert_eq!(report.kept_files, [to.path().join("generation_config.json")]);
    assert!(report.to_string().contains("generation_config.json` was there already and was kept"), "{report}");
    assert_eq!(names(to.path()), ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json"]);
    assert_eq!(fs::read(to.path().join("tokenizer.json")).expect("reads"), b"theirs");
    assert_eq!(fs::read(to.path().join("generation_config.json")).expect("reads"), b"ours");

    // Only one that differs is worth a word.
    fs::write(to.path().join("generation_config.json"), "theirs").expect("writes");
    let report = small().save_pretrained_with(to.path(), &options).expect("saves");
    assert_eq!(report.kept_files, Vec::<std::path::PathBuf>::new());
}

#[test]
fn numbers_beyond_the_range_are_an_error_on_the_way_in_and_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = ToyConfig { num_hidden_layers: 0, ..ToyConfig::tied() };
    fs::write(folder.path().join("config.json"), serde_json::to_string(&config).expect("JSON")).expect("writes");
    let write = |last: f32| {
        let mut embedding = [1.0; 28];
        embedding[27] = last;
        let tensors =
            [("model.norm.weight", &[4][..], &[1.0; 4][..]), ("model.embed_tokens.weight", &[7, 4], &embedding)];
        fs::write(folder.path().join("model.safetensors"), file_of(&tensors)).expect("writes");
    };
    let load = |dtype: Option<FloatDType>| {
        let options = LoadOptions::new().dtype(dtype);
        ToyForCausalLM::from_pretrained_with(folder.path(), &ndarray(), &options).map(|(model, _)| model)
    };
    let half = SaveOptions::new().dtype(FloatDType::F16);
    let to = tempfile::tempdir().expect("a folder");

    write(1e6);
    let expected = |key: &str| format!("cannot convert `{key}` from F32 to F16: 1000000 is out of range");
    let model = load(None).expect("loads as it is");
    let error = model.save_pretrained_with(to.path(), &half).expect_err("out of range");
    // the first of the two that share the value
    assert_eq!(error.to_string(), expected("lm_head.weight"));
    assert!(matches!(error, SaveError::Convert { .. }));
    assert!(names(to.path()).is_empty(), "nothing is left of it");
    let on_flex = ToyForCausalLM::from_pretrained_with(
        folder.path(),
        &Device::flex(),
        &LoadOptions::new().dtype(FloatDType::F16),
    );
    assert_eq!(on_flex.expect_err("out of range").to_string(), expected("model.embed_tokens.weight"));

    write(f32::INFINITY);
    load(None).expect("loads").save_pretrained_with(to.path(), &half).expect("what is infinite stays so");
}

#[test]
fn progress_and_report_agree() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&seen);
    let options = SaveOptions::new()
        .max_shard_size(100)
        .progress(move |progress| record.lock().expect("no panic").push((progress.tensors, progress.bytes)));
    let folder = tempfile::tempdir().expect("a folder");
    let report = small().save_pretrained_with(folder.path(), &options).expect("saves");
    let seen = seen.lock().expect("no panic");
    assert_eq!(seen.last(), Some(&(report.tensors, report.bytes)));
    assert_eq!(seen.len(), report.tensors);
    assert!(report.files.len() > 2);
    assert_eq!(names(folder.path()).len(), report.files.len() + 2);
}

#[test]
fn a_shard_of_nothing_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = small().save_pretrained_with(folder.path(), &SaveOptions::new().max_shard_size(0));
    assert!(matches!(error, Err(SaveError::ShardSize)));
    assert_eq!(names(folder.path()), Vec::<String>::new());
}

#[test]
fn a_tensor_larger_than_a_shard_gets_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = small().save_pretrained_with(folder.path(), &SaveOptions::new().max_shard_size(1)).expect("saves");
    assert_eq!(report.files.len(), report.tensors);
    let loaded = ToyForCausalLM::from_pretrained(folder.path(), &Device::flex());
    assert_eq!(loaded.expect("loads").config().hidden_size, 4);
}

#[test]
fn an_adapter_must_be_merged_first() {
    use burn::module::{Lora, Module};
    let model = small().apply_lora(Lora::new(2, 4.0));
    let folder = tempfile::tempdir().expect("a folder");
    let error = model.save_pretrained(folder.path()).expect_err("not merged");
    assert!(matches!(error, SaveError::Adapter { .. }), "{error}");
    model.clone().materialize().save_pretrained(folder.path()).expect("merged");

    // Loading goes past adapters to what they sit on.
    let (loaded, report) = ToyForCausalLM::load_weights_with(model, folder.path(), &LoadOptions::new()).expect("loads");
    assert!(report.is_exact(), "{report}");
    assert!(loaded.save_pretrained(folder.path()).is_err());
}

#[test]
fn saved_models_load_with_the_same_values() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = ToyForCausalLM::from_pretrained(fixture("llama"), &ndarray()).expect("loads");
    model.save_pretrained(folder.path()).expect("saves");
    let again = ToyForCausalLM::from_pretrained(folder.path(), &Device::flex()).expect("loads");
    assert_eq!(values(&model), values(&again));
}
