//! Patches and checkpoints.

use crate::model::*;
use patching_core::patch::PatchSet;
use patching_core::prelude::*;
use patching_core::weights::{LoadError, LoadOptions, PreTrainedModel};

fn saved() -> (tempfile::TempDir, BertModel) {
    let folder = tempfile::tempdir().expect("a folder");
    let model = plain(&BertConfig::tiny());
    model.save_pretrained(folder.path()).expect("saves");
    (folder, model)
}

fn output(model: &BertModel) -> Vec<f32> {
    let output = model.forward(input(), &ForwardKwargs::new()).expect("runs");
    output.last_hidden_state.into_data().try_to_vec().expect("floats")
}

#[test]
fn a_wrapper_adds_nothing_to_the_keys() {
    let _registry = Registry::empty();
    let (folder, original) = saved();
    register_patch_mapping([("BertSelfAttention", class::<Wrapped>()), ("^BertLayer$", class::<WrappedLayer>())])
        .expect("registers");
    let (model, report) =
        BertModel::from_pretrained_with(folder.path(), &device(), &LoadOptions::new()).expect("the keys are the same");
    assert_eq!(report.patches.replaced.len(), 6);
    assert!(report.to_string().contains("`^BertLayer$` replaced 3 of the model's slots"), "{report}");
    assert_eq!(output(&model), output(&original));
    assert_eq!(model.recorders.pointed_at().len(), 2);

    let again = tempfile::tempdir().expect("a folder");
    model.save_pretrained(again.path()).expect("saves");
    let read = |folder: &tempfile::TempDir| std::fs::read(folder.path().join("model.safetensors")).expect("is there");
    assert_eq!(read(&folder), read(&again));
}

#[test]
fn a_set_given_with_the_options_is_used_instead_of_the_registry() {
    let _registry = Registry::empty();
    let (folder, _) = saved();
    register_patch_mapping([("BertSelfAttention", class::<NoAttention>())]).expect("registers");
    let wrapped = PatchSet::new([("BertSelfAttention", class::<Wrapped>())]).expect("a valid set");
    let options = LoadOptions::new().patches(wrapped);
    let (model, _) = BertModel::from_pretrained_with(folder.path(), &device(), &options).expect("loads");
    assert!(held(&model).iter().any(|slot| slot.ends_with(" Wrapped")));
    let plain = LoadOptions::new().patches(PatchSet::default());
    let (model, _) = BertModel::from_pretrained_with(folder.path(), &device(), &plain).expect("loads");
    assert!(!held(&model).iter().any(|slot| slot.ends_with("NoAttention")));
}

#[test]
fn a_replacement_without_the_weights_is_no_silent_loss() {
    let _registry = Registry::empty();
    let (folder, _) = saved();
    register_patch_mapping([("BertSelfAttention", class::<NoAttention>())]).expect("registers");
    let (_, report) =
        BertModel::from_pretrained_with(folder.path(), &device(), &LoadOptions::new()).expect("nothing is missing");
    assert_eq!(report.unexpected.len(), 6, "{report}");
    clear_patch_mapping();
    register_patch_mapping([(".*Attention$", class::<NoAttention>())]).expect("registers");
    let error = BertModel::from_pretrained(folder.path(), &device()).expect_err("does not fit");
    assert!(matches!(error, LoadError::Patch(_)), "{error}");
}
