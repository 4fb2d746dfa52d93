//! Where patches reach, and where not.

use crate::model::*;
use burn::module::Module;
use patching_core::patch::PatchSet;
use patching_core::prelude::*;
use patching_core::weights::{LoadError, PreTrainedModel};

const PATCHED: &str = "layers.0.attention.inner_self NoAttention";
const PLAIN: &str = "layers.0.attention.inner_self BertSelfAttention";

fn self_attention(model: &BertModel) -> String {
    held(model).swap_remove(2)
}

fn register() -> Registry {
    let registry = Registry::empty();
    register_patch_mapping([("BertSelfAttention", class::<NoAttention>())]).expect("registers");
    registry
}

#[test]
fn a_model_by_hand_is_patched_inside_only() {
    let _registry = register();
    let config = BertConfig::tiny();
    assert_eq!(self_attention(&plain(&config)), PLAIN);
    let inside = apply_patches(&device(), |init| {
        // a construction that is not told of the patches is not patched, here too
        assert_eq!(self_attention(&plain(&config)), PLAIN);
        BertModel::new(&config, init)
    });
    assert_eq!(self_attention(&inside.expect("constructs")), PATCHED);
    assert_eq!(self_attention(&plain(&config)), PLAIN);
}

#[test]
fn from_config_is_patched() {
    let _registry = register();
    let model = BertModel::from_config(&BertConfig::tiny(), &device()).expect("constructs");
    assert_eq!(self_attention(&model), PATCHED);
    assert_eq!(model.recorders.pointed_at()[0].replacement, "NoAttention");
    assert_eq!(model.recorders.pointed_at()[0].class, "BertSelfAttention");
    clear_patch_mapping();
    let model = BertModel::from_config(&BertConfig::tiny(), &device()).expect("constructs");
    assert_eq!(self_attention(&model), PLAIN);
    assert!(model.recorders.pointed_at().is_empty());
}

#[test]
fn a_set_as_a_value_needs_no_registry() {
    let _registry = register();
    let config = BertConfig::tiny();
    let none = PatchSet::default();
    let (model, report) = BertModel::from_config_with(&config, &device(), &none).expect("constructs");
    assert_eq!(self_attention(&model), PLAIN);
    assert!(report.is_empty());
    let wrapped = PatchSet::new([("BertSelfAttention", class::<Wrapped>())]).expect("a valid set");
    let (model, report) = BertModel::from_config_with(&config, &device(), &wrapped).expect("constructs");
    assert_eq!(self_attention(&model), "layers.0.attention.inner_self Wrapped");
    assert_eq!(report.replaced.len(), 3);
    assert_eq!(get_patch_mapping().to_string(), "{BertSelfAttention: NoAttention}");
}

#[test]
fn from_config_fails_where_a_pattern_does_not_fit() {
    let _registry = Registry::empty();
    register_patch_mapping([(".*Attention", class::<NoAttention>())]).expect("registers");
    let error = BertModel::from_config(&BertConfig::tiny(), &device()).expect_err("does not fit");
    assert!(matches!(&error, LoadError::Patch(_)), "{error}");
    assert!(error.to_string().starts_with("cannot replace classes of the model: the key `.*Attention` matches"));
}

#[test]
fn a_replacement_may_construct_its_original() {
    let set = PatchSet::new([("BertSelfAttention", class::<Wrapped>()), ("BertLayer", class::<WrappedLayer>())])
        .expect("a valid set");
    let config = BertConfig { layers: 1, ..BertConfig::tiny() };
    let (model, report) = set.apply(&device(), |init| BertModel::new(&config, init)).expect("constructs");
    let expected = [
        "layers.0 WrappedLayer",
        "layers.0 BertLayer",
        "layers.0.attention BertAttention",
        "layers.0.attention.inner_self Wrapped",
        "layers.0.attention.inner_self BertSelfAttention",
    ];
    assert_eq!(held(&model), expected);
    assert_eq!(report.replaced.len(), 2);
    assert_eq!(model.num_params(), plain(&config).num_params());
}

#[test]
fn anything_may_be_constructed() {
    let _registry = register();
    let config = BertConfig::tiny();
    let pair = apply_patches(&device(), |init| (BertModel::new(&config, init), BertModel::new(&config, init)));
    let (one, other) = pair.expect("constructs");
    assert_eq!([self_attention(&one), self_attention(&other)], [PATCHED, PATCHED]);
    let failed = apply_patches(&device(), |_| Err::<BertModel, _>("no"));
    assert_eq!(failed.expect("no patch failed").expect_err("the caller's own error"), "no");
}

#[test]
fn constructors_that_run_in_parallel_are_patched() {
    let _registry = register();
    let config = BertConfig::tiny();
    let models: Vec<BertModel> = apply_patches(&device(), |init| {
        std::thread::scope(|scope| {
            let handles: Vec<_> = (0..4).map(|_| scope.spawn(|| BertModel::new(&config, init))).collect();
            handles.into_iter().map(|handle| handle.join().expect("constructs")).collect()
        })
    })
    .expect("constructs");
    assert!(models.iter().all(|model| self_attention(model) == PATCHED));
}
