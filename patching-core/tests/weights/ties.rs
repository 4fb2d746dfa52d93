//! Tied parameters: one value, loaded once, saved once.

use std::fs;
use std::path::Path;

use burn::module::Module;
use burn::nn::{Embedding, EmbeddingConfig, Linear, LinearConfig};
use burn::tensor::Device;
use patching_core::prelude::*;
use patching_core::weights::{LoadError, LoadOptions};
use serde_json::json;

use crate::support::{ToyConfig, ToyForCausalLM, devices, file_of, ndarray, tensors, values};

fn tiny() -> ToyConfig {
    ToyConfig { num_hidden_layers: 0, ..ToyConfig::tied() }
}

fn write(dir: &Path, weights: &[(&str, &[usize], &[f32])]) {
    fs::write(dir.join("model.safetensors"), file_of(weights)).expect("writes");
    fs::write(dir.join("config.json"), json!(tiny()).to_string()).expect("writes");
}

const NORM: (&str, &[usize], &[f32]) = ("model.norm.weight", &[4], &[1.0; 4]);

fn numbers(first: u8) -> Vec<f32> {
    (first..first + 28).map(f32::from).collect()
}

fn load(dir: &Path, device: &Device) -> (ToyForCausalLM, patching_core::weights::LoadReport) {
    ToyForCausalLM::from_pretrained_with(dir, device, &LoadOptions::new()).expect("loads")
}

fn both(model: &ToyForCausalLM) -> [Vec<f32>; 2] {
    let head = model.lm_head.weight.val().transpose().into_data().try_to_vec().expect("floats");
    [head, model.model.embed_tokens.weight.val().into_data().try_to_vec().expect("floats")]
}

#[test]
fn whichever_of_the_two_is_there_serves_both() {
    for (name, device) in devices() {
        for (key, tied) in
            [("model.embed_tokens.weight", "lm_head.weight"), ("lm_head.weight", "model.embed_tokens.weight")]
        {
            let folder = tempfile::tempdir().expect("a folder");
            write(folder.path(), &[NORM, (key, &[7, 4], &numbers(1))]);
            let (model, report) = load(folder.path(), &device);
            assert_eq!(both(&model), [numbers(1), numbers(1)], "{name} {key}");
            assert_eq!(report.tied.len(), 1);
            assert_eq!((report.tied[0].key.as_str(), report.tied[0].source.as_str()), (tied, key));
            assert_eq!(report.bytes, (28 + 4) * 4, "what is shared counts once");
        }
    }
}

#[test]
fn equal_values_are_tied_and_different_ones_are_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, other) = (numbers(1), numbers(2));
    let embedding = ("model.embed_tokens.weight", &[7, 4][..], &one[..]);

    write(folder.path(), &[NORM, embedding, ("lm_head.weight", &[7, 4], &one)]);
    let (model, report) = load(folder.path(), &Device::flex());
    assert_eq!((report.tied.len(), report.untied.len()), (1, 0));
    model.save_pretrained(folder.path()).expect("saves");
    assert!(!tensors(folder.path()).contains_key("lm_head.weight"));

    write(folder.path(), &[NORM, embedding, ("lm_head.weight", &[7, 4], &other)]);
    let (model, report) = load(folder.path(), &Device::flex());
    assert_eq!((report.tied.len(), report.untied.len()), (0, 1));
    assert!(!report.is_exact());
    assert_eq!(both(&model), [other.clone(), one.clone()]);

    // Neither gets lost on the way back.
    let report = model.save_pretrained(folder.path()).expect("saves");
    assert_eq!((report.tied.len(), report.untied.len()), (0, 1));
    assert_eq!(both(&load(folder.path(), &Device::flex()).0), [other, one]);
}

#[test]
fn both_absent_is_an_error_that_names_both() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), &[NORM]);
    let error = ToyForCausalLM::from_pretrained(folder.path(), &Device::flex()).expect_err("missing");
    let LoadError::Weights(report) = error else { panic!("{error}") };
    let missing: Vec<_> = report.missing.iter().map(|missing| missing.key.as_str()).collect();
    assert_eq!(missing, ["model.embed_tokens.weight", "lm_head.weight"]);
}

#[test]
fn a_fresh_model_is_tied_too() {
    for (name, device) in devices() {
        let model = ToyForCausalLM::from_config(&ToyConfig::tied(), &device).expect("constructs");
        let [head, embedding] = both(&model);
        assert_eq!(head, embedding, "{name}");
        assert!(embedding.iter().any(|value| *value != 0.0));
    }
    let model = ToyForCausalLM::from_config(&ToyConfig::small(), &Device::flex()).expect("constructs");
    let [head, embedding] = both(&model);
    assert_ne!(head, embedding);
}

#[test]
fn tied_parameters_train_apart_from_the_same_start() {
    let device = Device::flex().autodiff();
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), &[NORM, ("lm_head.weight", &[7, 4], &numbers(1))]);
    let (model, _) = load(folder.path(), &device);
    let fresh = ToyForCausalLM::from_config(&tiny(), &device).expect("constructs");
    for model in [model, fresh] {
        let ids = burn::tensor::Tensor::from_data([[1, 2]], &device);
        let grads = model.forward(ids).sum().backward();
        assert!(model.lm_head.weight.grad(&grads).is_some());
        assert!(model.model.embed_tokens.weight.grad(&grads).is_some());
    }
}

#[test]
fn a_loaded_model_computes_the_same_tied_or_not() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), &[NORM, ("lm_head.weight", &[7, 4], &numbers(1))]);
    let (flex, ndarray) = (load(folder.path(), &Device::flex()).0, load(folder.path(), &ndarray()).0);
    assert_eq!(values(&flex), values(&ndarray));
}

/// A head that shares the embedding's parameter; whether it has one of its own is seen from the checkpoint.
#[derive(Module, Debug)]
struct Sharing {
    embed_tokens: Embedding,
    lm_head: Option<Linear>,
    #[module(skip)]
    config: ToyConfig,
    recorders: OutputRecorders,
}

impl PreTrainedModel for Sharing {
    type Config = ToyConfig;
    const CLASS_NAME: &'static str = "Sharing";
    const BASE_MODEL_PREFIX: &'static str = "model";

    fn new(config: &ToyConfig, init: &Init) -> Self {
        let (size, vocabulary) = (config.hidden_size, config.vocab_size);
        let head = || LinearConfig::new(size, vocabulary).with_bias(false).init(init.device());
        Self {
            embed_tokens: EmbeddingConfig::new(vocabulary, size).init(init.device()),
            lm_head: (!config.tie_word_embeddings).then(head),
            config: config.clone(),
            recorders: OutputRecorders::default(),
        }
    }

    fn config(&self) -> &ToyConfig {
        &self.config
    }

    fn implied_ties(config: &ToyConfig) -> Vec<(String, String)> {
        let tie = config.tie_word_embeddings;
        tie.then(|| ("lm_head.weight".into(), "embed_tokens.weight".into())).into_iter().collect()
    }

    fn untied(config: &ToyConfig, key: &str) -> Option<ToyConfig> {
        // the one that says it has nothing else to offer
        let offers = key == "lm_head.weight" && config.attention.as_deref() != Some("stubborn");
        offers.then(|| ToyConfig { tie_word_embeddings: false, ..config.clone() })
    }
}

/// Whatever the checkpoint holds, the model has as many parameters as there are values, and is saved as it was.
#[test]
fn a_checkpoint_may_untie_what_the_config_ties() {
    let (one, other) = (numbers(1), numbers(2));
    let embedding = ("embed_tokens.weight", &[7, 4][..], &one[..]);
    for (weights, heads) in [
        (vec![embedding], 0),
        (vec![embedding, ("lm_head.weight", &[7, 4], &one)], 0),
        (vec![("lm_head.weight", &[7, 4], &one)], 0),
        (vec![embedding, ("lm_head.weight", &[7, 4], &other)], 1),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), &weights);
        let before = tensors(folder.path());
        let (model, report) =
            Sharing::from_pretrained_with(folder.path(), &Device::flex(), &LoadOptions::new()).expect("loads");
        assert_eq!((model.num_params(), model.lm_head.is_some()), (28 * (1 + heads), heads == 1));
        assert_eq!(report.loaded, 1 + heads);
        let table: Vec<f32> = model.embed_tokens.weight.val().into_data().try_to_vec().expect("floats");
        assert_eq!(table, one);
        model.save_pretrained(folder.path()).expect("saves");
        assert_eq!(tensors(folder.path()), before);
    }
}

#[test]
fn a_model_that_cannot_be_untied_says_what_differs() {
    let (one, other) = (numbers(1), numbers(2));
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), &[("embed_tokens.weight", &[7, 4], &one), ("lm_head.weight", &[7, 4], &other)]);
    let stubborn = LoadOptions::new().attn_implementation("stubborn");
    let refused = Sharing::from_pretrained_with(folder.path(), &Device::flex(), &stubborn).map(drop);
    assert!(matches!(&refused, Err(LoadError::Untied { key, .. }) if key == "lm_head.weight"), "{refused:?}");
    // nor one that is there already
    let model = Sharing::from_config(&tiny(), &Device::flex()).expect("constructs");
    assert!(matches!(model.load_weights(folder.path()), Err(LoadError::Untied { .. })));
}
