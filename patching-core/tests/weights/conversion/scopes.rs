//! Heads, base models, and models inside others.

use burn::tensor::Device;
use patching_core::class::Init;
use patching_core::weights::{
    Concatenate, LoadOptions, PreTrainedModel, WeightConverter, WeightRenaming,
    register_checkpoint_conversion_mapping as register, unregister_checkpoint_conversion_mapping as unregister,
};

use super::bag::{Bag, BagConfig, BagHead, Stored, counting, folder, load, mapping, saved};
use crate::support::tensors;

fn pair() -> WeightConverter {
    WeightConverter::new(["left", "right"], "both").with(Concatenate::dim(0))
}

fn stored(prefix: &str) -> Vec<Stored> {
    vec![
        counting(&format!("{prefix}a.left"), &[1], 1),
        counting(&format!("{prefix}a.right"), &[2], 2),
        counting(&format!("{prefix}norm"), &[1], 4),
    ]
}

#[test]
fn a_prefix_changes_with_a_conversion_too() {
    let name = "scopes_prefix";
    let config = BagConfig::new(&[("a.both", &[3]), ("norm", &[1])]).model_type(name);
    register(name, [pair()]).expect("registers");
    let head = |dir| {
        BagHead::new(&config, &Init::new(&Device::flex()))
            .load_weights_with(dir, &LoadOptions::new().allow_missing(true))
    };

    // a head's checkpoint into its base model, and what that saves is a checkpoint of its own
    let mut all = stored("model.");
    all.push(counting("score", &[2], 9));
    let of_head = folder(&all);
    let (base, report) = load(&config, of_head.path(), &LoadOptions::new()).expect("loads");
    assert_eq!(report.unexpected, ["score"]);
    assert_eq!(base.floats("a.both"), [1.0, 2.0, 3.0]);
    let of_base = folder(&stored(""));
    assert_eq!(saved(&base), tensors(of_base.path()));

    // and the other way round
    let (from_base, report) = head(of_base.path()).expect("loads");
    assert_eq!(report.missing.len(), 1);
    assert_eq!(from_base.model.floats("a.both"), [1.0, 2.0, 3.0]);
    let keys: Vec<_> = saved(&from_base).into_keys().collect();
    assert_eq!(keys, ["model.a.left", "model.a.right", "model.norm", "score"]);

    let (whole, _) = head(of_head.path()).expect("loads");
    assert_eq!(saved(&whole), tensors(of_head.path()));
    unregister(name).expect("is registered");
}

#[test]
fn a_base_model_taken_out_of_its_head_goes_by_the_rules() {
    let name = "scopes_taken_out";
    let config = BagConfig::new(&[("a.both", &[3]), ("norm", &[1])]).model_type(name);
    let sizes = WeightConverter::new(["left", "right"], "both").with(Concatenate::dim(0).sizes([1, 2]));
    register(name, [sizes]).expect("registers");
    let mut all = stored("model.");
    all.push(counting("score", &[2], 9));
    let folder_of_head = folder(&all);
    let head = BagHead::new(&config, &Init::new(&Device::flex())).load_weights(folder_of_head.path()).expect("loads");
    assert_eq!(saved(&head.model), tensors(folder(&stored("")).path()));
    unregister(name).expect("is registered");
}

#[test]
fn rules_for_a_class_and_for_its_type_both_apply() {
    let (name, class) = ("scopes_class", "BagForScoring");
    let config = BagConfig::new(&[("a.both", &[3]), ("norm", &[1])]).model_type(name);
    register(name, [pair()]).expect("registers");
    register(class, [WeightRenaming::new("points", "score")]).expect("registers");
    let mut all = stored("model.");
    all.push(counting("points", &[2], 9));
    let folder = folder(&all);
    let loaded =
        BagHead::new(&config, &Init::new(&Device::flex())).load_weights_with(folder.path(), &LoadOptions::new());
    unregister(class).expect("is registered");
    let (head, report) = loaded.expect("loads");
    assert!(report.is_exact(), "{report}");
    assert_eq!((report.renamed.len(), report.converted.len()), (1, 1));
    assert_eq!(saved(&head), tensors(folder.path()));
    unregister(name).expect("is registered");
}

#[test]
fn the_rules_of_a_submodel_stay_in_its_part() {
    let (text, vision) = ("scopes_text", "scopes_vision");
    let config = BagConfig {
        submodels: vec![
            ["text_model".into(), "TextModel".into(), text.into()],
            ["vision_model".into(), "VisionModel".into(), vision.into()],
        ],
        ..BagConfig::new(&[
            ("text_model.a.both", &[3]),
            ("vision_model.new", &[1]),
            ("text_model.old", &[1]),
            ("vision_model.left", &[1]),
        ])
    };
    register(text, [pair()]).expect("registers");
    register(vision, [WeightRenaming::regex("^old$", "new").expect("an expression")]).expect("registers");
    let stored = [
        counting("text_model.a.left", &[1], 1),
        counting("text_model.a.right", &[2], 2),
        counting("text_model.old", &[1], 4),
        counting("vision_model.old", &[1], 5),
        counting("vision_model.left", &[1], 6),
    ];
    let folder = folder(&stored);
    let (model, report) = load(&config, folder.path(), &LoadOptions::new()).expect("loads");
    assert!(report.is_exact(), "{report}");
    assert_eq!(model.floats("vision_model.new"), [5.0]);
    assert_eq!(saved(&model), tensors(folder.path()));
    // and from the rules alone
    let sizes = WeightConverter::new(["left", "right"], "both").with(Concatenate::dim(0).sizes([1, 2]));
    unregister(text).expect("is registered");
    register(text, [sizes]).expect("registers");
    let fresh = Bag::on(&config, &Device::flex());
    assert_eq!(saved(&fresh).keys().collect::<Vec<_>>(), tensors(folder.path()).keys().collect::<Vec<_>>());
    unregister(text).expect("is registered");
    unregister(vision).expect("is registered");
}

#[test]
fn tied_parameters_may_be_converted() {
    let config = BagConfig {
        ties: vec![["head".into(), "embed".into()]],
        ..BagConfig::new(&[("embed", &[3, 2]), ("head", &[3, 2])])
    };
    let rule = || mapping([WeightConverter::new(["e.0", "e.1"], "embed").with(Concatenate::dim(0))]);
    let parts = [counting("e.0", &[1, 2], 0), counting("e.1", &[2, 2], 2)];
    let options = LoadOptions::new().conversions(rule());
    let folder_of_parts = folder(&parts);
    let (model, report) = load(&config, folder_of_parts.path(), &options).expect("loads");
    assert_eq!(report.tied.len(), 1);
    assert_eq!(model.floats("head"), model.floats("embed"));
    assert_eq!(saved(&model), tensors(folder_of_parts.path()));
    // both, and equal
    let both = [parts[0].clone(), parts[1].clone(), counting("head", &[3, 2], 0)];
    let (_, report) = load(&config, folder(&both).path(), &options).expect("loads");
    assert_eq!((report.tied.len(), report.untied.len()), (1, 0));
    // and different
    let both = [parts[0].clone(), parts[1].clone(), counting("head", &[3, 2], 1)];
    let (model, report) = load(&config, folder(&both).path(), &options).expect("loads");
    assert_eq!((report.tied.len(), report.untied.len()), (0, 1));
    assert_eq!(saved(&model), tensors(folder(&both).path()));
}
