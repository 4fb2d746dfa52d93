//! Saving models that were not loaded, or were changed since: by the rules alone, or not at all.

use burn::tensor::Device;
use patching_core::weights::{
    CheckpointLayout, Chunk, Concatenate, ConversionMapping, LoadOptions, MergeModulelist, PreTrainedModel,
    RestoreError, SaveError, SaveOptions, Split, SplitModulelist, Transpose, WeightConverter, WeightRenaming,
    WeightTransform,
};

use super::bag::{Bag, BagConfig, converting, counting, folder, load, mapping, saved, there_and_back};
use crate::support::{Tensors, tensors};

fn save_by(model: &Bag, rules: ConversionMapping) -> Result<Tensors, SaveError> {
    let folder = tempfile::tempdir().expect("a folder");
    model.save_pretrained_with(folder.path(), &SaveOptions::new().conversions(rules))?;
    Ok(tensors(folder.path()))
}

/// Saves a fresh model by the rules and loads that by the same rules: the model is back. Returns the keys and shapes.
fn by_rules<R: Into<WeightTransform>>(config: &BagConfig, rules: impl IntoIterator<Item = R>) -> Vec<String> {
    let mapping = mapping(rules);
    let model = Bag::on(config, &Device::flex());
    let folder = tempfile::tempdir().expect("a folder");
    let options = SaveOptions::new().conversions(mapping.clone());
    model.save_pretrained_with(folder.path(), &options).unwrap_or_else(|error| panic!("{error}"));
    let options = LoadOptions::new().conversions(mapping);
    let (again, report) = load(config, folder.path(), &options).unwrap_or_else(|error| panic!("{error}"));
    assert!(report.is_exact(), "{report}");
    assert_eq!(again.content(), model.content());
    tensors(folder.path()).into_iter().map(|(key, (_, shape, _))| format!("{key} {shape:?}")).collect()
}

#[test]
fn sizes_come_from_the_rule() {
    let config = BagConfig::new(&[("a.qkv.weight", &[4, 2]), ("a.qkv.bias", &[4])]);
    let rule = |concatenate| WeightConverter::new(["q", "k", "v"], "qkv").with(concatenate);
    assert_eq!(
        by_rules(&config, [rule(Concatenate::dim(0).sizes([2, 1, 1]))]),
        ["a.k.bias [1]", "a.k.weight [1, 2]", "a.q.bias [2]", "a.q.weight [2, 2]", "a.v.bias [1]", "a.v.weight [1, 2]"]
    );
    let model = Bag::on(&config, &Device::flex());
    let error = save_by(&model, mapping([rule(Concatenate::dim(0).equal())])).expect_err("4 is not 3 parts");
    assert_eq!(
        error.to_string(),
        "`a.qkv.bias` [4] cannot be divided again by the rule `q`, `k`, `v` -> `qkv`: Concatenate(dim=0, equal): 4 is not 3 \
         equal parts; give them with `Concatenate::dim(..).sizes([..])` or `.equal()`, or save with \
         `CheckpointLayout::Model`"
    );
    let error = save_by(&model, mapping([rule(Concatenate::dim(0))])).expect_err("nobody knows");
    assert!(
        error.to_string().contains("the sizes of its parts are not known, and the model without patches has no `a.q"),
        "{error}"
    );
}

#[test]
fn sizes_come_from_the_model_without_patches() {
    let plain = BagConfig::new(&[("a.q", &[2, 3]), ("a.k", &[1, 3]), ("a.v", &[1, 3]), ("norm", &[1])]);
    let fused = BagConfig::new(&[("a.qkv", &[4, 3]), ("norm", &[1])]);
    let model = Bag::patched(&plain, &fused);
    let rule = WeightConverter::new(["q", "k", "v"], "qkv").with(Concatenate::dim(0));
    let saved = save_by(&model, mapping([rule])).expect("saves");
    let shapes: Vec<_> = saved.iter().map(|(key, (_, shape, _))| format!("{key} {shape:?}")).collect();
    assert_eq!(shapes, ["a.k [1, 3]", "a.q [2, 3]", "a.v [1, 3]", "norm [1]"]);
}

#[test]
fn experts_and_lists_and_names() {
    let config = BagConfig::new(&[("l.0.mlp.experts.gate_up", &[3, 4, 2]), ("l.0.mlp.gate.weight", &[3, 2])]);
    let rules = [
        WeightTransform::from(WeightRenaming::new("block_sparse_moe", "mlp")),
        WeightConverter::new(["mlp.experts.*.w1.weight", "mlp.experts.*.w3.weight"], "mlp.experts.gate_up")
            .with(MergeModulelist::dim(0))
            .with(Concatenate::dim(1).equal())
            .into(),
    ];
    let keys = by_rules(&config, rules);
    assert_eq!(keys.len(), 7);
    assert_eq!(keys[5], "l.0.block_sparse_moe.experts.2.w3.weight [2, 2]");
    assert_eq!(keys[6], "l.0.block_sparse_moe.gate.weight [3, 2]");

    let config = BagConfig::new(&[("x.0.l", &[1]), ("x.1.l", &[1]), ("x.0.r", &[2]), ("x.1.r", &[2])]);
    let rule = WeightConverter::new("x.both", ["x.*.l", "x.*.r"]).with(Split::dim(1)).with(SplitModulelist::dim(0));
    assert_eq!(by_rules(&config, [rule]), ["x.both [2, 3]"]);
    let rule = WeightConverter::new("turned", ["x.*.l", "x.*.r"])
        .with(Transpose::dims(0, 1))
        .with(Split::dim(1))
        .with(SplitModulelist::dim(0));
    assert_eq!(by_rules(&config, [rule]), ["turned [3, 2]"]);
}

#[test]
fn expressions_are_undone_where_that_is_sound() {
    let config = BagConfig::new(&[("layers.0.w", &[1]), ("layers.11.w", &[1]), ("norm", &[1])]);
    let rule =
        |expression: &str, replacement: &str| WeightRenaming::regex(expression, replacement).expect("an expression");
    let sound = rule(r"^encoder\.layer\.(\d+)\.", "layers.$1.");
    assert_eq!(by_rules(&config, [sound]), ["encoder.layer.0.w [1]", "encoder.layer.11.w [1]", "norm [1]"]);

    let model = Bag::on(&config, &Device::flex());
    let lossy = || rule(r"^encoder.layers?\.(\d+)", "layers.$1");
    let error = save_by(&model, mapping([lossy()])).expect_err("the `s` is lost");
    let text = error.to_string();
    let expected = r"the rule /^encoder.layers?\.(\d+)/ -> `layers.$1` cannot be undone for `layers.0.w`: ";
    assert!(text.starts_with(expected), "{text}");
    let expected = "; say how with `WeightRenaming::with_inverse`, or save with `CheckpointLayout::Model`";
    assert!(text.ends_with(expected), "{text}");
    // where it can have made nothing, there is nothing to undo
    let others = BagConfig::new(&[("decoder.layers.0.w", &[1]), ("norm", &[1])]);
    let rules = [WeightTransform::from(lossy()), WeightRenaming::new("scale", "norm").into()];
    let saved = save_by(&Bag::on(&others, &Device::flex()), mapping(rules)).expect("saves");
    assert_eq!(saved.into_keys().collect::<Vec<_>>(), ["decoder.layers.0.w", "scale"]);
    let told = lossy().with_inverse(r"^layers\.(\d+)", "encoder.layers.$1");
    assert_eq!(by_rules(&config, [told]), ["encoder.layers.0.w [1]", "encoder.layers.11.w [1]", "norm [1]"]);
    // an inverse that is none is noticed, and nothing is written
    let wrong = lossy().with_inverse(r"^layers\.(\d+)", "decoder.layers.$1");
    let error = save_by(&model, mapping([wrong])).expect_err("it does not load again");
    assert!(error.to_string().contains("nothing would take `decoder.layers.0.w`"), "{error}");
}

#[test]
fn what_would_not_load_again_is_not_written() {
    let config = BagConfig::new(&[("a.new", &[2, 2])]);
    let model = Bag::on(&config, &Device::flex());
    // whether a square was transposed nobody could tell
    let rule = WeightConverter::new("old", "new").with(Transpose::dims(0, 1).if_needed());
    let error = save_by(&model, mapping([rule])).expect_err("ambiguous");
    assert!(error.to_string().contains("would fit exchanged and as they are"), "{error}");
    // two parameters that would get one name
    let config = BagConfig::new(&[("a", &[1]), ("b", &[1])]);
    let model = Bag::on(&config, &Device::flex());
    let error = save_by(&model, mapping([WeightRenaming::new("a", "b")])).expect_err("a clash");
    assert!(error.to_string().contains("is made twice"), "{error}");
    let folder = tempfile::tempdir().expect("a folder");
    let options = SaveOptions::new().conversions(mapping([WeightRenaming::new("a", "b")]));
    assert!(model.save_pretrained_with(folder.path(), &options).is_err());
    assert_eq!(std::fs::read_dir(folder.path()).expect("it lists").count(), 0);
}

#[test]
fn an_operation_that_cannot_have_made_a_parameter() {
    let model = Bag::on(&BagConfig::new(&[("a.new", &[4])]), &Device::flex());
    let rule = WeightConverter::new("old", "new").with(Transpose::dims(0, 1));
    let error = save_by(&model, mapping([rule])).expect_err("it has one dimension");
    assert!(matches!(&error, SaveError::Restore(RestoreError::Operation { .. })), "{error}");
    assert_eq!(
        error.to_string(),
        "`a.new` [4] cannot be undone by the rule `old` -> `new`: Transpose(dim0=0, dim1=1): there is no dimension 1 in \
         [4]; correct the rule, or save with `CheckpointLayout::Model`"
    );
}

#[test]
fn rules_are_not_ignored_in_the_model_s_own_layout() {
    let model = Bag::on(&BagConfig::new(&[("new", &[1])]), &Device::flex());
    let options =
        SaveOptions::new().layout(CheckpointLayout::Model).conversions(mapping([WeightRenaming::new("old", "new")]));
    let folder = tempfile::tempdir().expect("a folder");
    let error = model.save_pretrained_with(folder.path(), &options).expect_err("either of them");
    assert!(matches!(error, SaveError::ConversionsInModelLayout), "{error}");
}

#[test]
fn parts_of_different_types_are_not_joined() {
    let mut config = BagConfig::new(&[("l", &[2]), ("r", &[2])]);
    config.parameters[1].2 = 'i';
    let model = Bag::on(&config, &Device::flex());
    let rule = WeightConverter::new("both", ["l", "r"]).with(Chunk::dim(0));
    let error = save_by(&model, mapping([rule])).expect_err("floats and integers").to_string();
    assert!(
        error.starts_with("`both` would be made of parameters of different types: `l` of F32, `r` of I"),
        "{error}"
    );
}

#[test]
fn the_model_s_own_layout_on_request() {
    let config = BagConfig::new(&[("qkv", &[4])]);
    let rule = || WeightConverter::new(["q", "k", "v"], "qkv").with(Concatenate::dim(0));
    let parts = folder(&[counting("q", &[2], 0), counting("k", &[1], 2), counting("v", &[1], 3)]);
    let (model, _) = load(&config, parts.path(), &converting([rule()])).expect("loads");
    let own = tempfile::tempdir().expect("a folder");
    model.save_pretrained_with(own.path(), &SaveOptions::new().layout(CheckpointLayout::Model)).expect("saves");
    assert_eq!(tensors(own.path()).keys().collect::<Vec<_>>(), ["qkv"]);
    // the same model, saved as it was, and what is said of it
    let back = tempfile::tempdir().expect("a folder");
    let report = model.save_pretrained(back.path()).expect("saves");
    assert_eq!(tensors(back.path()), tensors(parts.path()));
    assert_eq!(report.converted.len(), 1);
    assert_eq!(
        (report.converted[0].sources.as_slice(), report.converted[0].targets.as_slice()),
        (&["qkv".to_owned()][..], &["q".to_owned(), "k".into(), "v".into()][..])
    );
    assert_eq!(report.converted[0].operations, ["inverse of Concatenate(dim=0)"]);
    assert!(report.to_string().contains("1 parameters were converted back to 3 tensors"), "{report}");
    // loading the fused file forgets the parts
    let (model, _) = model_of(&config, own.path());
    assert_eq!(saved(&model).keys().collect::<Vec<_>>(), ["qkv"]);
}

fn model_of(config: &BagConfig, dir: &std::path::Path) -> (Bag, patching_core::weights::LoadReport) {
    load(config, dir, &LoadOptions::new()).expect("loads")
}

#[test]
fn a_model_in_another_type_is_parted_in_it() {
    let config = BagConfig::new(&[("qkv", &[4])]);
    let rule = WeightConverter::new(["q", "k", "v"], "qkv").with(Concatenate::dim(0));
    let parts = folder(&[counting("q", &[2], 0), counting("k", &[1], 2), counting("v", &[1], 3)]);
    let (model, _) = load(&config, parts.path(), &converting([rule])).expect("loads");
    let half = tempfile::tempdir().expect("a folder");
    let options = SaveOptions::new().dtype(burn::tensor::FloatDType::BF16);
    model.save_pretrained_with(half.path(), &options).expect("saves");
    let (dtype, shape, bytes) = tensors(half.path())["q"].clone();
    assert_eq!((dtype.as_str(), shape.as_slice(), bytes.len()), ("BF16", &[2][..], 4));
}

#[test]
fn a_model_that_was_changed_after_loading_goes_by_the_rules_where_it_has_to() {
    let plain = BagConfig::new(&[("a.q", &[2]), ("a.k", &[1]), ("b.q", &[2]), ("b.k", &[1]), ("norm", &[1])]);
    let stored: Vec<_> = plain.parameters.iter().map(|(key, shape, _)| counting(key, shape, 0)).collect();
    let folder = folder(&stored);
    let (mut model, _) = load(&plain, folder.path(), &LoadOptions::new()).expect("loads");
    // one of two layers is replaced by one that holds both
    let fused = BagConfig::new(&[("a.qk", &[3]), ("b.q", &[2]), ("b.k", &[1]), ("norm", &[1])]);
    model.take_parameters(Bag::on(&fused, &Device::flex()));
    let keys = |model: &Bag| saved(model).into_keys().collect::<Vec<_>>();
    assert_eq!(keys(&model), ["a.qk", "b.k", "b.q", "norm"]);

    let name = "saving_changed";
    model.config.model_type = name.into();
    let rule = WeightConverter::new(["q", "k"], "qk").with(Concatenate::dim(0));
    patching_core::weights::register_checkpoint_conversion_mapping(name, [rule]).expect("registers");
    assert_eq!(keys(&model), ["a.k", "a.q", "b.k", "b.q", "norm"]);
    patching_core::weights::unregister_checkpoint_conversion_mapping(name).expect("is registered");
}

/// A tensor that the model has no parameter for, since it uses another: it is saved under the names it was loaded from.
#[test]
fn a_tensor_that_was_there_twice_is_saved_twice() {
    let config = BagConfig {
        implied_ties: vec![["head".into(), "embed".into()]],
        ..BagConfig::new(&[("embed", &[3, 2]), ("norm", &[2])])
    };
    let (embed, head, norm) = (counting("embed", &[3, 2], 1), counting("head", &[3, 2], 1), counting("norm", &[2], 5));
    let none = || Vec::<WeightRenaming>::new();
    for stored in [vec![embed.clone(), norm.clone()], vec![head.clone(), norm.clone()], vec![embed, head, norm]] {
        let (model, report) = there_and_back(&config, &stored, none());
        assert_eq!(report.tied.len(), usize::from(stored.iter().any(|(key, ..)| key == "head")));
        assert_eq!(model.floats("embed")[0], 1.0);

        let folder = tempfile::tempdir().expect("a folder");
        let published = SaveOptions::new().layout(CheckpointLayout::Published);
        model.save_pretrained_with(folder.path(), &published).expect("saves");
        assert_eq!(tensors(folder.path()).into_keys().collect::<Vec<_>>(), ["embed", "norm"]);
    }
}

/// Names that only old checkpoints have are given to no model that did not come from one.
#[test]
fn legacy_names_are_remembered_and_not_made_up() {
    let config = BagConfig::new(&[("a.norm.weight", &[2]), ("b.norm.weight", &[2])]);
    let rules = || [WeightRenaming::new("norm.gamma", "norm.weight").legacy()];
    let stored =
        |[a, b]: [&str; 2]| [counting(&format!("a.norm.{a}"), &[2], 0), counting(&format!("b.norm.{b}"), &[2], 2)];
    for names in [["gamma", "gamma"], ["weight", "gamma"], ["weight", "weight"]] {
        there_and_back(&config, &stored(names), rules());
    }
    let fresh = Bag::on(&config, &Device::flex());
    let keys: Vec<_> = save_by(&fresh, mapping(rules())).expect("saves").into_keys().collect();
    assert_eq!(keys, ["a.norm.weight", "b.norm.weight"]);
}
