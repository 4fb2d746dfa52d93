//! Mappings by model type and class name.

use patching_core::weights::{
    BuiltInConversion, Concatenate, ConversionError, ConversionMapping, LoadError, LoadOptions, PreTrainedModel,
    Transpose, WeightConverter, WeightRenaming, get_checkpoint_conversion_mapping,
    register_checkpoint_conversion_mapping, register_checkpoint_conversion_mapping_with,
    unregister_checkpoint_conversion_mapping,
};

use super::bag::{Bag, BagConfig, counting, folder, load, saved};
use crate::support::tensors;
use burn::tensor::Device;

fn qkv() -> WeightConverter {
    WeightConverter::new(["q_proj", "k_proj", "v_proj"], "qkv_proj").with(Concatenate::dim(0))
}

fn found(name: &str) -> Option<ConversionMapping> {
    get_checkpoint_conversion_mapping(name).expect("it can be used")
}

#[test]
fn a_mapping_is_registered_once_unless_overwritten() {
    let name = "registry_once";
    assert!(found(name).is_none());
    register_checkpoint_conversion_mapping(name, [qkv()]).expect("the first");
    let error = register_checkpoint_conversion_mapping(name, [WeightRenaming::new("a", "b")]).expect_err("the second");
    assert_eq!(error, ConversionError::AlreadyRegistered { name: name.into() });
    assert_eq!(
        error.to_string(),
        "conversions of `registry_once` are registered already: unregister them first, or replace them with `register_checkpoint_conversion_mapping_with(…, true)`"
    );
    let rules = [WeightRenaming::new("a", "b"), WeightRenaming::new("c", "d")];
    register_checkpoint_conversion_mapping_with(name, rules, true).expect("overwrites");
    assert_eq!(found(name).expect("registered").to_string(), "`a` -> `b`\n`c` -> `d`");

    // one wrong rule, and nothing changes
    let rules = [WeightRenaming::new("e", "f"), WeightRenaming::new("", "g")];
    assert!(register_checkpoint_conversion_mapping_with(name, rules, true).is_err());
    assert_eq!(found(name).expect("registered").len(), 2);
    assert_eq!(unregister_checkpoint_conversion_mapping(name).expect("registered").len(), 2);
    let error = unregister_checkpoint_conversion_mapping(name).expect_err("is not registered any more").to_string();
    assert!(error.contains(name), "{error}");
    for blank in ["", "  ", "\t"] {
        assert_eq!(
            register_checkpoint_conversion_mapping(blank, [qkv()]).expect_err("no name").to_string(),
            "the name to register conversions for is empty, expected a model type or a class name"
        );
    }
}

#[test]
fn what_is_registered_for_the_model_type_applies() {
    let name = "registry_type";
    let config = BagConfig::new(&[("qkv_proj", &[4])]).model_type(name);
    let stored = [counting("q_proj", &[2], 0), counting("k_proj", &[1], 2), counting("v_proj", &[1], 3)];
    let folder = folder(&stored);
    assert!(load(&config, folder.path(), &LoadOptions::new()).is_err());
    register_checkpoint_conversion_mapping(name, [qkv()]).expect("registers");
    let (model, _) = load(&config, folder.path(), &LoadOptions::new()).expect("loads");
    // rules of one load take the place of registered ones
    let none = LoadOptions::new().conversions(ConversionMapping::empty());
    assert!(load(&config, folder.path(), &none).is_err());
    unregister_checkpoint_conversion_mapping(name).expect("is registered");
    // the model remembers
    assert_eq!(saved(&model), tensors(folder.path()));
}

fn built_in() -> Result<ConversionMapping, ConversionError> {
    ConversionMapping::new([WeightRenaming::new("old", "new")])
}
fn wrong() -> Result<ConversionMapping, ConversionError> {
    ConversionMapping::new([WeightRenaming::new("old", "")])
}
patching_core::__private::inventory::submit! { BuiltInConversion::new("registry_built_in", built_in) }
patching_core::__private::inventory::submit! { BuiltInConversion::new("registry_wrong", wrong) }
patching_core::__private::inventory::submit! { BuiltInConversion::new("registry_twice", built_in) }
patching_core::__private::inventory::submit! { BuiltInConversion::new("registry_twice", built_in) }

#[test]
fn built_in_mappings_that_cannot_be_used_are_errors() {
    let folder = folder(&[counting("new.a", &[1], 0)]);
    for (name, expected) in [
        (
            "registry_wrong",
            "the rule `old` -> `` cannot be used: the pattern `` is empty, expected one or more segments",
        ),
        (
            "registry_twice",
            "two crates of this program have built in conversions of `registry_twice`, expected one; register those that are \
             meant",
        ),
    ] {
        let config = BagConfig::new(&[("new.a", &[1])]).model_type(name);
        let error = get_checkpoint_conversion_mapping(name).expect_err("it cannot be used");
        assert_eq!(error.to_string(), expected);
        let error = load(&config, folder.path(), &LoadOptions::new()).expect_err("it cannot be used");
        assert!(matches!(&error, LoadError::Conversion(_)), "{error}");
        let target = tempfile::tempdir().expect("a folder");
        let error = Bag::on(&config, &Device::flex()).save_pretrained(target.path()).expect_err("it cannot be used");
        assert_eq!(error.to_string(), expected);
        // what is registered takes its place
        register_checkpoint_conversion_mapping(name, [WeightRenaming::new("old", "new")]).expect("registers");
        let old = super::bag::folder(&[counting("old.a", &[1], 0)]);
        let (model, _) = load(&config, old.path(), &LoadOptions::new()).expect("loads");
        assert_eq!(saved(&model), tensors(old.path()));
        unregister_checkpoint_conversion_mapping(name).expect("is registered");
    }
}

#[test]
fn names_that_nothing_uses_are_told() {
    let config = BagConfig::new(&[("qkv_proj", &[4])]).model_type("registry_vain");
    let parts = folder(&[counting("q_proj", &[2], 0), counting("k_proj", &[1], 2), counting("v_proj", &[1], 3)]);
    for name in ["registry_vian", "RegistryVain", "BagsModel", "registry_other"] {
        register_checkpoint_conversion_mapping(name, [qkv()]).expect("registers");
    }
    let error = load(&config, parts.path(), &LoadOptions::new()).expect_err("the names are wrong");
    let LoadError::Weights(report) = &error else { panic!("{error}") };
    let told: Vec<_> = report.unused_conversions.iter().map(ToString::to_string).collect();
    let vain = |name: &str, near: &str| {
        format!("conversions registered for `{name}` are not used: this model has the name `{near}`")
    };
    let expected =
        [vain("BagsModel", "BagModel"), vain("RegistryVain", "registry_vain"), vain("registry_vian", "registry_vain")];
    assert_eq!(told, expected);
    assert!(expected.iter().all(|line| error.to_string().contains(line)), "{error}");
    // with rules of its own, a load looks at no names
    let options = super::bag::converting([qkv()]);
    let (_, report) = load(&config, parts.path(), &options).expect("loads");
    assert_eq!(report.unused_conversions, []);
    for name in ["registry_vian", "RegistryVain", "BagsModel", "registry_other"] {
        unregister_checkpoint_conversion_mapping(name).expect("is registered");
    }
}

#[test]
fn options_for_a_construction_are_no_options_for_weights_alone() {
    let config = BagConfig::new(&[("a", &[1])]);
    let folder = folder(&[counting("a", &[1], 0)]);
    let refused = |options: LoadOptions| {
        let error = load(&config, folder.path(), &options).expect_err("it is constructed already").to_string();
        let (names, rest) = error.split_once(" of the load options ").expect("it says which");
        assert_eq!(rest, "can only be chosen when a model is constructed; use `from_pretrained_with`");
        names.to_owned()
    };
    let patches = patching_core::patch::PatchSet::default();
    assert_eq!(refused(LoadOptions::new().patches(patches.clone())), "`patches`");
    let both = LoadOptions::new().experts_implementation("eager").attn_implementation("eager");
    assert_eq!(refused(both), "`attn_implementation`, `experts_implementation`");
    // where the model is constructed they are followed
    let text = serde_json::to_string(&config).expect("JSON");
    std::fs::write(folder.path().join("config.json"), text).expect("writes");
    let options = LoadOptions::new().patches(patches).attn_implementation("eager");
    Bag::from_pretrained_with(folder.path(), &Device::flex(), &options).expect("loads");
}

#[test]
fn a_registered_mapping_takes_the_place_of_a_built_in_one() {
    let name = "registry_built_in";
    let config = BagConfig::new(&[("new.a", &[1])]).model_type(name);
    assert_eq!(found(name).expect("built in").to_string(), "`old` -> `new`");
    let old = folder(&[counting("old.a", &[1], 0)]);
    let (model, report) = load(&config, old.path(), &LoadOptions::new()).expect("loads");
    assert_eq!(report.renamed.len(), 1);
    assert_eq!(saved(&model), tensors(old.path()));
    // a built-in rule that does nothing is nothing to tell
    let new = folder(&[counting("new.a", &[1], 0)]);
    let (_, report) = load(&config, new.path(), &LoadOptions::new()).expect("loads");
    assert!(report.unused_rules.is_empty());

    register_checkpoint_conversion_mapping(name, [WeightRenaming::new("older", "new")]).expect("registers");
    assert!(load(&config, old.path(), &LoadOptions::new()).is_err());
    let older = folder(&[counting("older.a", &[1], 0)]);
    load(&config, older.path(), &LoadOptions::new()).expect("loads");
    unregister_checkpoint_conversion_mapping(name).expect("is registered");
    load(&config, old.path(), &LoadOptions::new()).expect("loads again");
}

#[test]
fn threads_register_and_load_side_by_side() {
    let stored = [counting("q_proj", &[2, 2], 0), counting("k_proj", &[1, 2], 4), counting("v_proj", &[1, 2], 6)];
    let folder = folder(&stored);
    let expected = tensors(folder.path());
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (folder, expected) = (&folder, &expected);
            scope.spawn(move || {
                let name = format!("registry_thread_{number}");
                let flip = number % 2 == 1;
                let shape: &[usize] = if flip { &[2, 4] } else { &[4, 2] };
                let config = BagConfig::new(&[("qkv_proj", shape)]).model_type(&name);
                for _ in 0..20 {
                    let rule = if flip { qkv().with(Transpose::dims(0, 1)) } else { qkv() };
                    register_checkpoint_conversion_mapping(name.as_str(), [rule]).expect("registers");
                    let (model, _) = load(&config, folder.path(), &LoadOptions::new()).expect("loads");
                    assert_eq!(saved(&model), *expected);
                    unregister_checkpoint_conversion_mapping(&name).expect("is there");
                    assert!(load(&config, folder.path(), &LoadOptions::new()).is_err());
                }
            });
        }
    });
}

#[test]
fn a_folder_with_a_config_is_all_it_takes() {
    let name = "registry_folder";
    let config = BagConfig::new(&[("qkv_proj", &[4])]).model_type(name);
    let folder = folder(&[counting("q_proj", &[2], 0), counting("k_proj", &[1], 2), counting("v_proj", &[1], 3)]);
    let text = serde_json::to_string(&config).expect("JSON");
    std::fs::write(folder.path().join("config.json"), text).expect("writes");
    register_checkpoint_conversion_mapping(name, [qkv()]).expect("registers");
    let model = Bag::from_pretrained(folder.path(), &burn::tensor::Device::flex()).expect("loads");
    assert_eq!(model.floats("qkv_proj"), [0.0, 1.0, 2.0, 3.0]);
    unregister_checkpoint_conversion_mapping(name).expect("is registered");
}
