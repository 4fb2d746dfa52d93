//! Which class gets which replacement.

use crate::model::{BertConfig, BertModel, NoAttention, Scaled, Wrapped, device, held};
use patching_core::patch::{PatchError, PatchSet, Unfit, original};
use patching_core::prelude::*;
use patching_core::weights::PreTrainedModel;

fn set<const N: usize>(mapping: [(&str, patching_core::patch::ReplacementClass); N]) -> PatchSet {
    PatchSet::new(mapping).expect("a valid set")
}

fn one_layer() -> BertConfig {
    BertConfig { layers: 1, ..BertConfig::tiny() }
}

fn built(set: &PatchSet, config: &BertConfig) -> Vec<String> {
    let (model, _) = set.apply(&device(), |init| BertModel::new(config, init)).expect("constructs");
    held(&model)
}

#[test]
fn a_name_is_exact() {
    let set = set([("BertLayer", class::<Scaled<2>>())]);
    assert_eq!(built(&set, &one_layer()), ["layers.0 Scaled<2>"]);
    let mega = BertConfig { mega: true, ..one_layer() };
    let expected =
        ["mega.0 MegatronBertLayer", "mega.0.attention BertAttention", "mega.0.attention.inner_self BertSelfAttention"];
    assert_eq!(built(&set, &mega), expected);
}

#[test]
fn an_expression_matches_anywhere_unless_anchored() {
    let mega = BertConfig { mega: true, ..one_layer() };
    assert_eq!(built(&set([("BertLayer$", class::<Scaled<2>>())]), &mega), ["mega.0 Scaled<2>"]);
    assert_eq!(built(&set([("Bert.ayer", class::<Scaled<2>>())]), &mega), ["mega.0 Scaled<2>"]);
    assert_eq!(built(&set([("^BertLayer$", class::<Scaled<2>>())]), &mega).len(), 3);
}

#[test]
fn a_name_beats_patterns_and_the_first_pattern_wins() {
    let patterns = set([("Layer$", class::<Scaled<1>>()), ("^Bert.*r$", class::<Scaled<2>>())]);
    assert_eq!(built(&patterns, &one_layer()), ["layers.0 Scaled<1>"]);
    let with_name = patterns.with([("BertLayer", class::<Scaled<3>>())], false).expect("a valid set");
    assert_eq!(built(&with_name, &one_layer()), ["layers.0 Scaled<3>"]);
}

#[test]
fn original_exempts_from_patterns_after_it() {
    let set = set([("BertLayer", original()), ("Layer$", class::<Scaled<2>>())]);
    assert_eq!(built(&set, &one_layer()).len(), 3);
    let mega = BertConfig { mega: true, ..one_layer() };
    assert_eq!(built(&set, &mega), ["mega.0 Scaled<2>"]);
}

#[test]
fn a_pattern_that_matches_too_much_is_an_error() {
    // the documents' example: the outer attention is not one that the replacement can stand in for
    let set = set([(".*Attention", class::<NoAttention>())]);
    let error = set.apply(&device(), |init| BertModel::new(&BertConfig::tiny(), init)).expect_err("matches too much");
    let expected = "the key `.*Attention` matches `BertAttention`, but `NoAttention` stands in for `BertCrossAttention`, \
                    `BertSelfAttention` only; a narrower key is `^(?:BertCrossAttention|BertSelfAttention)$`";
    assert_eq!(error.to_string(), expected);
    let PatchError::Unfit { unfit } = error else { panic!("another error") };
    let [Unfit { narrower: Some(narrower), matched, .. }] = unfit.as_slice() else { panic!("one pattern") };
    assert_eq!(matched, &["BertAttention"]);

    // what it proposes works
    let narrower = PatchSet::new([(narrower.as_str(), class::<NoAttention>())]).expect("a valid key");
    let found = built(&narrower, &one_layer());
    assert_eq!(
        found,
        ["layers.0 BertLayer", "layers.0.attention BertAttention", "layers.0.attention.inner_self NoAttention"]
    );
}

#[test]
fn every_pattern_that_does_not_fit_is_named() {
    let set = set([("Layer$", class::<NoAttention>()), ("^BertAtt", class::<Wrapped>())]);
    let error = set.apply(&device(), |init| BertModel::new(&one_layer(), init)).expect_err("do not fit");
    let message = error.to_string();
    let lines: Vec<_> = message.lines().collect();
    assert_eq!(lines.len(), 2, "{message}");
    assert!(lines[0].contains("`Layer$` matches `BertLayer`") && lines[0].ends_with("the key matches none of those"));
    assert!(lines[1].contains("`^BertAtt` matches `BertAttention`"), "{message}");
}

#[test]
fn the_report_says_why_a_key_replaced_nothing() {
    let lines = |patches: &PatchSet| {
        let report = BertModel::patch_plan(&one_layer(), &device(), patches).expect("a plan");
        report.unmatched.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let beaten = set([
        ("BertLayer", class::<Scaled<1>>()),
        ("^BertLayer$", class::<Scaled<2>>()),
        ("Layer", class::<Scaled<3>>()),
        ("bertlayer", class::<Scaled<3>>()),
    ]);
    let expected = [
        "`^BertLayer$` (for `Scaled<2>`) matches `BertLayer`, but `BertLayer` came before it: a name beats expressions",
        "`Layer` (for `Scaled<3>`) is a name that no class in the model has; as an expression, `Layer$` would match `BertLayer`",
        "`bertlayer` (for `Scaled<3>`) matches nothing in the model; did you mean `BertLayer`?",
    ];
    assert_eq!(lines(&beaten), expected);
    let twice = set([("Layer$", class::<Scaled<1>>()), ("^BertL", class::<Scaled<2>>())]);
    let expected =
        ["`^BertL` (for `Scaled<2>`) matches `BertLayer`, but `Layer$` came before it: it was registered first"];
    assert_eq!(lines(&twice), expected);

    let report = twice.report(&crate::model::plain(&one_layer()));
    let first = report.unmatched.first().map(ToString::to_string).unwrap_or_default();
    assert!(
        first.starts_with("`Layer$` (for `Scaled<1>`) matches `BertLayer`, but the model was constructed without"),
        "{first}"
    );
}

/// Another crate's class of a name that is taken.
mod other {
    use burn::module::Module;
    use burn::tensor::Tensor;
    use patching_core::prelude::*;

    #[derive(Module, Debug)]
    pub struct BertLayer {}

    #[module_class]
    impl BertLayer {
        pub fn new(_init: &Init) -> Self {
            Self {}
        }
        pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
            x
        }
    }
}

#[test]
fn a_name_means_the_class_that_the_replacement_is_for() {
    let patches = set([("BertLayer", class::<Scaled<2>>())]);
    let (slot, report) =
        patches.apply(&device(), other::BertLayer::slot).expect("another class of the name is left alone");
    assert!(slot.implementation::<other::BertLayer>().is_some());
    assert_eq!(
        report.to_string(),
        "`BertLayer` (for `Scaled<2>`) stands in for another crate's `BertLayer` than that of the model, so it was left alone"
    );
    // an expression means all classes that it matches
    let patches = set([("BertLayer$", class::<Scaled<2>>())]);
    patches.apply(&device(), other::BertLayer::slot).expect_err("the replacement is not for this class");
}

#[test]
fn errors_print_as_sentences() {
    let error = PatchSet::new([("[", class::<NoAttention>())]).expect_err("invalid");
    assert_eq!(format!("{error:?}"), error.to_string());
}

#[test]
fn the_report_says_what_was_replaced_and_what_matched_nothing() {
    let patches =
        set([("BertSelfAttention", class::<NoAttention>()), ("BertLayr", class::<Scaled<2>>()), ("x", original())]);
    let report = BertModel::patch_plan(&one_layer(), &device(), &patches).expect("a plan");
    let expected = "`BertSelfAttention` replaced 1 of the model's slots\n  \
                    layers.0.attention.inner_self  BertSelfAttention -> NoAttention\n\
                    `BertLayr` (for `Scaled<2>`) matches nothing in the model; did you mean `BertLayer`?\n\
                    `x` (for `the original`) matches nothing in the model";
    assert_eq!(report.to_string(), expected);
    assert_eq!(PatchSet::default().report(&crate::model::plain(&one_layer())).to_string(), "no patches");
}
