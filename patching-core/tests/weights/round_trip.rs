//! Load, then save: equal keys, equal bytes.

use std::fs;

use burn::tensor::Device;
use patching_core::weights::{LoadOptions, PreTrainedModel, ReadMode, SaveOptions};
use serde_json::Value;

use crate::support::{ToyForCausalLM, ToyModel, fixture, ndarray, tensors};

fn round_trip<M: PreTrainedModel>(name: &str, device: &Device, load: &LoadOptions, save: &SaveOptions) {
    let original = fixture(name);
    let (model, report) = M::from_pretrained_with(&original, device, load).expect(name);
    assert!(report.is_exact(), "{name}: {report}");
    assert_eq!(report.casts, [], "{name}");

    let folder = tempfile::tempdir().expect("a folder");
    model.save_pretrained_with(folder.path(), save).expect(name);

    assert_eq!(tensors(folder.path()), tensors(&original), "{name}");
    for file in fs::read_dir(&original).expect("it lists") {
        let file = file.expect("it lists").file_name();
        let read = |dir: &std::path::Path| fs::read(dir.join(&file)).expect("the same files on both sides");
        let (saved, expected) = (read(folder.path()), read(&original));
        let json = file.to_str().is_some_and(|file| file.ends_with(".json"));
        if json {
            let parse = |bytes: &[u8]| {
                let mut value: Value = serde_json::from_slice(bytes).expect("JSON");
                // The toy is called the same whatever family it stands for.
                value.as_object_mut().expect("an object").remove("architectures");
                value
            };
            assert_eq!(parse(&saved), parse(&expected), "{name}: {file:?}");
        } else {
            // Not only the tensors: the header too.
            assert!(saved == expected, "{name}: {file:?} differs");
        }
    }
}

#[test]
fn every_decoder_comes_back_byte_for_byte() {
    for mode in [ReadMode::Map, ReadMode::Read] {
        let load = LoadOptions::new().read_mode(mode);
        let save = SaveOptions::new();
        for name in ["llama", "llama-bf16", "llama-f16", "llama-tied", "mistral", "qwen2", "qwen3"] {
            round_trip::<ToyForCausalLM>(name, &Device::flex(), &load, &save);
        }
        round_trip::<ToyModel>("llama-base", &Device::flex(), &load, &save);
    }
}

#[test]
fn shards_are_those_of_the_reference() {
    let save = SaveOptions::new().max_shard_size(40_000);
    round_trip::<ToyForCausalLM>("llama-sharded", &Device::flex(), &LoadOptions::new(), &save);
}

#[test]
fn ndarray_gives_the_same_bytes() {
    let device = ndarray();
    for name in ["llama", "llama-tied", "qwen3"] {
        round_trip::<ToyForCausalLM>(name, &device, &LoadOptions::new(), &SaveOptions::new());
    }
}

#[test]
fn an_autodiff_device_gives_the_same_bytes() {
    let device = Device::flex().autodiff();
    for name in ["llama", "llama-tied"] {
        round_trip::<ToyForCausalLM>(name, &device, &LoadOptions::new(), &SaveOptions::new());
    }
}
