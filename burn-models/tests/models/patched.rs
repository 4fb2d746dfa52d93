//! Replaced classes and converted weights against the reference, in every combination.

use crate::replacements::{FusedQkvAttention, ModuleListExperts, fuse_qkv, list_experts};
use crate::support::{Case, TOLERANCE, assert_close_data, devices, flat};
use burn_models::LanguageModelOutput;
use burn_models::llama::LlamaForCausalLM;
use burn_models::mixtral::MixtralForCausalLM;
use burn_models::models::CausalLM;
use burn_models::qwen2_moe::Qwen2MoeForCausalLM;
use patching_core::patch::{PatchSet, ReplacementClass};
use patching_core::prelude::*;
use patching_core::weights::{
    Chunk, ConversionMapping, LoadError, LoadOptions, MergeModulelist, SaveOptions, SplitModulelist, WeightConverter,
    WeightRenaming, WeightTransform,
};
use std::path::Path;

fn mapping(rules: Vec<WeightTransform>) -> ConversionMapping {
    ConversionMapping::new(rules).expect("valid rules")
}

fn patches(all: Vec<(&str, ReplacementClass)>) -> PatchSet {
    PatchSet::new(all).expect("a valid set")
}

/// The weights of a folder, as they are in the file.
fn weights(folder: &Path) -> Vec<u8> {
    std::fs::read(folder.join("model.safetensors")).expect("the weights are there")
}

/// Every recorded value is the reference's.
#[track_caller]
fn check(case: &Case, output: &impl LanguageModelOutput, what: &str) {
    let found = output.as_tuple();
    let values = flat(&found);
    for (key, expected) in &case.expected("outputs.safetensors") {
        let name = format!("{} {what}: {key}", case.name);
        let value = values.get(key).unwrap_or_else(|| panic!("{name} is missing"));
        assert_close_data(&name, value, expected, TOLERANCE);
    }
}

/// What a checkpoint's experts are turned into, by the layout of the file and the class that takes them.
fn expert_rules(name: &str, fused_file: bool, replaced: bool) -> Vec<WeightTransform> {
    let block = (name == "mixtral" && !fused_file).then(|| WeightRenaming::new("block_sparse_moe", "mlp").into());
    let [gate, up, down] = if name == "mixtral" { ["w1", "w3", "w2"] } else { ["gate_proj", "up_proj", "down_proj"] };
    let of = |name: &str| format!("mlp.experts.*.{name}.weight");
    let listed = |name: &str| format!("mlp.experts.list.*.{name}.weight");
    let rules: Vec<WeightTransform> = match (fused_file, replaced) {
        (false, false) => vec![
            WeightConverter::new([of(gate), of(up)], "mlp.experts.gate_up_proj")
                .with(MergeModulelist::dim(0))
                .with(patching_core::weights::Concatenate::dim(1))
                .into(),
            WeightConverter::new(of(down), "mlp.experts.down_proj").with(MergeModulelist::dim(0)).into(),
        ],
        (true, false) => Vec::new(),
        (false, true) if name == "mixtral" => [(gate, "gate_proj"), (up, "up_proj"), (down, "down_proj")]
            .map(|(from, to)| WeightRenaming::new(of(from), listed(to)).into())
            .into(),
        (false, true) => vec![list_experts().into()],
        (true, true) => vec![
            WeightConverter::new("mlp.experts.gate_up_proj", [listed("gate_proj"), listed("up_proj")])
                .with(Chunk::dim(1))
                .with(SplitModulelist::dim(0))
                .into(),
            WeightConverter::new("mlp.experts.down_proj", listed("down_proj")).with(SplitModulelist::dim(0)).into(),
        ],
    };
    block.into_iter().chain(rules).collect()
}

/// Original and replaced experts and attention, from both layouts of the checkpoint, and back to the same bytes.
fn every_combination<M: CausalLM + PreTrainedModel>(name: &'static str) {
    let case = Case::new(name);
    for (on, device) in devices() {
        for (layout, fused_file) in [(".", false), ("fused", true)] {
            let folder = case.folder().join(layout);
            for (attention, experts) in [(false, false), (true, false), (false, true), (true, true)] {
                let what = format!("on {on}, {layout}, fused attention {attention}, listed experts {experts}");
                let mut replaced = Vec::new();
                let mut rules = expert_rules(name, fused_file, experts);
                if attention {
                    replaced.push(("^(Qwen2Moe|Mixtral)Attention$", class::<FusedQkvAttention>()));
                    rules.push(fuse_qkv().into());
                }
                if experts {
                    replaced.push(("Experts$", class::<ModuleListExperts>()));
                }
                let mut options = LoadOptions::new().patches(patches(replaced.clone()));
                if attention || experts {
                    options = options.conversions(mapping(rules));
                }
                let (model, report) = M::from_pretrained_with(&folder, &device, &options)
                    .unwrap_or_else(|error| panic!("{what}: {error}"));
                assert!(report.unexpected.is_empty(), "{what}: {report}");
                assert!(report.patches.unmatched.is_empty(), "{what}: {report}");
                let output = model.forward_causal(case.inputs(&device), &case.kwargs()).expect("runs");
                check(&case, &output, &what);

                let saved = tempfile::tempdir().expect("a folder");
                model.save_pretrained(saved.path()).unwrap_or_else(|error| panic!("{what}: {error}"));
                assert!(weights(saved.path()) == weights(&folder), "{what}: other bytes");
            }
        }
    }
}

#[test]
fn qwen2_moe_in_every_combination() {
    every_combination::<Qwen2MoeForCausalLM>("qwen2_moe");
    every_combination::<Qwen2MoeForCausalLM>("qwen2_moe-norm");
}

#[test]
fn mixtral_in_every_combination() {
    every_combination::<MixtralForCausalLM>("mixtral");
}

/// The options for Llama with fused attention.
fn fused_llama() -> LoadOptions {
    LoadOptions::new()
        .patches(patches(vec![("LlamaAttention", class::<FusedQkvAttention>())]))
        .conversions(mapping(vec![fuse_qkv().into()]))
}

#[test]
fn llama_with_fused_attention() {
    let case = Case::new("llama-fused-qkv");
    for (on, device) in devices() {
        // the file in both layouts, the second fused already under the same rules
        let fused = tempfile::tempdir().expect("a folder");
        std::fs::copy(case.folder().join("config.json"), fused.path().join("config.json")).expect("copies");
        let file = case.folder().join("fused.safetensors");
        std::fs::copy(file, fused.path().join("model.safetensors")).expect("copies");

        for folder in [case.folder(), fused.path()] {
            let (model, _) = LlamaForCausalLM::from_pretrained_with(folder, &device, &fused_llama()).expect("loads");
            check(&case, &model.forward_causal(case.inputs(&device), &case.kwargs()).expect("runs"), on);
            let saved = tempfile::tempdir().expect("a folder");
            model.save_pretrained(saved.path()).expect("saves");
            assert!(weights(saved.path()) == weights(folder), "{on}, {}: other bytes", folder.display());
        }

        // from one layout to the other and back, by what the caller chooses
        let (model, _) = LlamaForCausalLM::from_pretrained_with(case.folder(), &device, &fused_llama()).expect("loads");
        let as_model = tempfile::tempdir().expect("a folder");
        let layout = patching_core::weights::CheckpointLayout::Model;
        model.save_pretrained_with(as_model.path(), &SaveOptions::new().layout(layout)).expect("saves");
        assert!(weights(as_model.path()) == weights(fused.path()), "{on}: fused as the reference fuses");
    }
}

#[test]
fn a_model_that_was_not_loaded_is_split_by_the_sizes_of_the_original() {
    let case = Case::new("llama-fused-qkv");
    let (_, device) = devices().remove(0);
    let config = <LlamaForCausalLM as PreTrainedModel>::Config::from_pretrained(case.folder()).expect("a config");
    let set = patches(vec![("LlamaAttention", class::<FusedQkvAttention>())]);
    let (model, report) = LlamaForCausalLM::from_config_with(&config, &device, &set).expect("constructs");
    assert_eq!(report.replaced.len(), 2);
    let saved = tempfile::tempdir().expect("a folder");
    let options = SaveOptions::new().conversions(mapping(vec![fuse_qkv().into()]));
    model.save_pretrained_with(saved.path(), &options).expect("saves");
    let shapes = |folder: &Path| {
        let tensors = crate::support::tensors(&folder.join("model.safetensors"));
        tensors.into_iter().map(|(key, data)| (key, data.shape().to_vec())).collect::<Vec<_>>()
    };
    assert_eq!(shapes(saved.path()), shapes(case.folder()));
}

#[test]
fn a_missing_expert_is_named() {
    let case = Case::new("qwen2_moe");
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::copy(case.folder().join("config.json"), folder.path().join("config.json")).expect("copies");
    let bytes = weights(case.folder());
    let file = safetensors::SafeTensors::deserialize(&bytes).expect("valid");
    let lost = "model.layers.2.mlp.experts.1.up_proj.weight";
    let kept = file.tensors().into_iter().filter(|(key, _)| key != lost);
    std::fs::write(folder.path().join("model.safetensors"), safetensors::serialize(kept, None).expect("valid"))
        .expect("writes");
    let (_, device) = devices().remove(0);
    let error = Qwen2MoeForCausalLM::from_pretrained(folder.path(), &device).expect_err("one is missing");
    assert!(matches!(error, LoadError::Weights(_)), "{error}");
    assert!(error.to_string().contains(lost), "{error}");
}
