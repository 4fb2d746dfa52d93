//! Slots of a model that is there already.

use crate::model::*;
use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::tensor::Tensor;
use patching_core::patch::{PatchError, replace_slots};
use patching_core::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The ids of all parameters, and whether each was made.
fn parameters(model: &BertModel) -> Vec<(ParamId, bool)> {
    struct Ids(Vec<(ParamId, bool)>);
    impl ModuleVisitor for Ids {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0.push((param.id, param.is_initialized()));
        }
    }
    let mut ids = Ids(Vec::new());
    model.visit(&mut ids);
    ids.0
}

fn attentions(model: &BertModel) -> usize {
    let output = model.forward(input(), &ForwardKwargs::new().output_attentions(true)).expect("records");
    output
        .attentions
        .iter()
        .filter(|(_, _, value)| (*value).clone().into_data().iter::<f32>().all(|x| x == 0.0))
        .count()
}

#[test]
fn by_path_and_put_back() {
    let mut model = plain(&BertConfig::tiny());
    let before = parameters(&model);
    assert!(before.iter().all(|(_, made)| !made), "constructing makes no parameter");
    // captured before: the next capture sees the new layers all the same
    assert_eq!(attentions(&model), 0);

    let mut seen = Vec::new();
    let originals = replace_slots::<BertSelfAttention, _>(&mut model, "layers.1", |path, slot| {
        seen.push((path.to_owned(), slot.implementation::<BertSelfAttention>().is_some()));
        Slot::of(NoAttention {})
    })
    .expect("replaces");
    assert_eq!(seen, [("layers.1.attention.inner_self".to_owned(), true)]);
    assert_eq!(originals.paths().collect::<Vec<_>>(), ["layers.1.attention.inner_self"]);
    assert_eq!(attentions(&model), 1);

    originals.put_back(&mut model).expect("is there");
    assert_eq!(attentions(&model), 0);
    let ids = |parameters: &[(ParamId, bool)]| parameters.iter().map(|(id, _)| *id).collect::<Vec<_>>();
    assert_eq!(ids(&parameters(&model)), ids(&before));
}

#[test]
fn by_class_and_with_wildcards() {
    for (at, count) in [("*", 3), ("layers.*.attention", 3), ("layers.0.attention.inner_self", 1), (".inner_self.", 3)]
    {
        let mut model = plain(&BertConfig::tiny());
        let replaced = replace_slots::<BertSelfAttention, _>(&mut model, at, |_, _| Slot::of(NoAttention {}));
        assert_eq!(replaced.expect("replaces").originals().count(), count, "{at}");
        assert_eq!(attentions(&model), count, "{at}");
    }
}

#[test]
fn a_copy_of_the_model_is_another_model() {
    let mut model = plain(&BertConfig::tiny());
    let copy = model.clone();
    let originals =
        replace_slots::<BertSelfAttention, _>(&mut model, "*", |_, _| Slot::of(NoAttention {})).expect("replaces");
    assert_eq!((attentions(&model), attentions(&copy)), (3, 0));
    let mut other = model.clone();
    originals.put_back(&mut other).expect("is there");
    assert_eq!((attentions(&model), attentions(&other)), (3, 0));
}

#[test]
fn nothing_found_is_an_error_that_says_what_is_there() {
    let mut model = plain(&BertConfig::tiny());
    let mut replace = |at: &str| {
        replace_slots::<BertSelfAttention, _>(&mut model, at, |_, _| Slot::of(NoAttention {}))
            .map(drop)
            .expect_err("nothing there")
            .to_string()
    };
    assert_eq!(
        replace("layers.9"),
        "the model has no slot of class `BertSelfAttention` at `layers.9`; there are \
         `layers.0.attention.inner_self`, `layers.1.attention.inner_self`, `layers.2.attention.inner_self`"
    );
    assert_eq!(replace(""), "`` is no path of a module: it has an empty segment");
    let error = replace_slots::<BertCrossAttention, _>(&mut model, "*", |_, slot| slot.clone()).map(drop);
    let message = error.expect_err("none").to_string();
    assert!(message.ends_with("it has none of class `BertCrossAttention`"), "{message}");
}

#[test]
fn putting_back_into_another_model_is_an_error() {
    let mut model = plain(&BertConfig::tiny());
    let originals = replace_slots::<BertSelfAttention, _>(&mut model, "layers.2", |_, _| Slot::of(NoAttention {}))
        .expect("replaces");
    let mut smaller = plain(&BertConfig { layers: 1, ..BertConfig::tiny() });
    let error = originals.put_back(&mut smaller).expect_err("has no such slot");
    assert!(matches!(error, PatchError::NoSlot { .. }), "{error}");
    // nothing is lost by it
    assert_eq!(attentions(&model), 1);
    originals.put_back(&mut model).expect("is there");
    assert_eq!(attentions(&model), 0);
}

#[test]
fn putting_back_finds_slots_that_were_wrapped_since() {
    let mut model = plain(&BertConfig::tiny());
    let at = "layers.0.attention";
    let inner =
        replace_slots::<BertSelfAttention, _>(&mut model, at, |_, _| Slot::of(NoAttention {})).expect("replaces");
    let outer = replace_slots::<BertLayer, _>(&mut model, "layers.0", |_, layer| {
        Slot::of(WrappedLayer { original: layer.clone() })
    })
    .expect("replaces");
    assert_eq!(attentions(&model), 1);
    inner.put_back(&mut model).expect("is there, inside the wrapper");
    assert_eq!(attentions(&model), 0);
    outer.put_back(&mut model).expect("is there");
    assert_eq!(attentions(&model), 1, "as it was when it was wrapped");
}

#[test]
fn a_panic_of_the_caller_leaves_the_model_as_it_was() {
    let mut model = plain(&BertConfig::tiny());
    let mut calls = 0;
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _ = replace_slots::<BertSelfAttention, _>(&mut model, "*", |_, _| {
            calls += 1;
            assert!(calls < 2, "asked to");
            Slot::of(NoAttention {})
        });
    }));
    assert!(panicked.is_err());
    assert_eq!(attentions(&model), 0);
    assert_eq!(held(&model), held(&plain(&BertConfig::tiny())));
}

#[test]
fn layers_are_replaced_with_what_is_in_them() {
    let mut model = plain(&BertConfig::tiny());
    let originals = replace_slots::<BertLayer, _>(&mut model, "layers.0", |_, layer| {
        Slot::of(WrappedLayer { original: layer.clone() })
    })
    .expect("replaces");
    assert_eq!(held(&model)[..2], ["layers.0 WrappedLayer", "layers.0 BertLayer"]);
    // what is inside the original is still found under its path
    let inner =
        replace_slots::<BertSelfAttention, _>(&mut model, "layers.0.attention", |_, _| Slot::of(NoAttention {}));
    assert_eq!(inner.expect("replaces").paths().collect::<Vec<_>>(), ["layers.0.attention.inner_self"]);
    assert_eq!(attentions(&model), 1);
    originals.put_back(&mut model).expect("is there");
    assert_eq!(attentions(&model), 0);
}
