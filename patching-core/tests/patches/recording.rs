//! Replacements are recorded without a line of code for it.

use crate::model::*;
use burn::tensor::Tensor;
use patching_core::patch::{PatchSet, ReplacementClass};
use patching_core::prelude::*;

fn built(mapping: &[(&str, ReplacementClass)]) -> BertModel {
    let set = PatchSet::new(mapping.iter().cloned()).expect("a valid set");
    set.apply(&device(), |init| BertModel::new(&BertConfig::tiny(), init)).expect("constructs").0
}

fn everything() -> ForwardKwargs {
    ForwardKwargs::new().output_hidden_states(true).output_attentions(true)
}

fn record(model: &BertModel) -> BertOutput {
    model.forward(input(), &everything()).expect("records")
}

fn values(tensor: &Tensor<3>) -> Vec<f32> {
    tensor.clone().into_data().try_to_vec().expect("floats")
}

fn paths(captured: &Captured<Tensor<3>>) -> Vec<String> {
    captured.iter().map(|(_, path, _)| path.to_owned()).collect()
}

#[test]
fn under_a_name_and_under_a_pattern() {
    for key in ["BertSelfAttention", "Self.*$"] {
        let output = record(&built(&[(key, class::<NoAttention>())]));
        assert_eq!(output.attentions.len(), 3);
        assert!(
            output.attentions.iter().all(|(_, _, value)| values(value) == vec![0.0; 8]),
            "the replacement's weights"
        );
        assert_eq!(output.hidden_states.len(), 4);
    }
}

#[test]
fn replaced_layers_too() {
    let output = record(&built(&[("BertLayer", class::<WrappedLayer>())]));
    assert_eq!((output.hidden_states.len(), output.attentions.len()), (4, 3));
    let model = built(&[("BertLayer", class::<Scaled<2>>())]);
    let output = model.forward(input(), &ForwardKwargs::new().output_hidden_states(true)).expect("records");
    assert_eq!(values(output.hidden_states.at(-1).expect("is there")), values(&(input() * 8.0)));
    // layers without attention have none to record, which is said
    let error = model.forward(input(), &everything()).expect_err("no attention").to_string();
    assert!(error.contains("attentions"), "{error}");
}

#[test]
fn a_transparent_wrapper_changes_nothing_and_is_recorded_once() {
    let original = plain(&BertConfig::tiny());
    // makes the parameters, so that copies have the same ones
    let expected = record(&original);
    let wrapped = {
        let mut model = original.clone();
        let replaced = patching_core::patch::replace_slots::<BertSelfAttention, _>(&mut model, "*", |_, slot| {
            Slot::of(Wrapped { original: slot.clone() })
        })
        .expect("replaces");
        assert_eq!(replaced.paths().count(), 3);
        let layers = patching_core::patch::replace_slots::<BertLayer, _>(&mut model, "*", |_, slot| {
            Slot::of(WrappedLayer { original: slot.clone() })
        });
        assert_eq!(layers.expect("replaces").paths().count(), 3);
        model
    };
    let found = record(&wrapped);
    assert_eq!(paths(&found.attentions), paths(&expected.attentions));
    assert_eq!(paths(&found.hidden_states), paths(&expected.hidden_states));
    for (one, other) in [(&expected.attentions, &found.attentions), (&expected.hidden_states, &found.hidden_states)] {
        assert!(one.iter().zip(other.iter()).all(|(one, other)| values(one.2) == values(other.2)));
    }
}

#[test]
fn a_plan_names_the_replacement() {
    let model = built(&[("BertSelfAttention", class::<NoAttention>())]);
    let plan = model.forward_plan(&ForwardKwargs::new().output_attentions([0])).expect("a plan").to_string();
    assert!(plan.contains("layers.0.attention.inner_self  ") && plan.contains("NoAttention"), "{plan}");
}

#[test]
fn recorders_are_pointed_at_the_replacement_in_this_instance_only() {
    let mut model = built(&[("BertSelfAttention", class::<NoAttention>())]);
    let before = model.clone();
    assert!(model.recorders.pointed_at().is_empty());
    patch_output_recorders(&mut model);
    let [pointed] = model.recorders.pointed_at() else { panic!("one class was replaced") };
    assert_eq!((pointed.class, pointed.replacement), ("BertSelfAttention", "NoAttention"));
    assert!(before.recorders.pointed_at().is_empty());
    assert!(plain(&BertConfig::tiny()).recorders.pointed_at().is_empty());
    assert!(model.to_string().contains("NoAttention for BertSelfAttention"), "{model}");
    // a copy is of this instance
    assert_eq!(model.clone().recorders.pointed_at(), model.recorders.pointed_at());
    assert_eq!(record(&model).attentions.len(), 3);
    assert_eq!(record(&before).attentions.len(), 3);
}

#[test]
fn an_original_is_recorded_as_before_whatever_was_patched_before() {
    let _ = record(&built(&[("BertSelfAttention", class::<NoAttention>())]));
    let output = record(&plain(&BertConfig::tiny()));
    assert_eq!(output.attentions.len(), 3);
    assert!(output.attentions.iter().any(|(_, _, value)| values(value) != vec![0.0; 4]));
}

mod strings {
    use super::*;

    /// Records by the name of a replacement.
    #[derive(burn::module::Module, Debug, CanRecordOutputs)]
    #[can_record_outputs(attentions = "NoAttention")]
    pub struct Stringly {
        layers: Vec<Slot<BertSelfAttention>>,
        #[module(skip)]
        config: BertConfig,
        recorders: OutputRecorders,
    }

    impl Stringly {
        #[capture_outputs]
        fn forward(&self, x: Tensor<3>, kwargs: &ForwardKwargs) -> Result<BertOutput, CaptureError> {
            let x = self.layers.iter().fold(x, |x, layer| layer.forward(x).0);
            Ok(BertOutput::new(x))
        }
    }

    #[test]
    fn a_string_names_a_replacement_too() {
        let config = BertConfig::tiny();
        let init = Init::new(&device());
        let layers = vec![
            BertSelfAttention::slot(&config, &init),
            Slot::of(NoAttention {}),
            BertSelfAttention::slot(&config, &init),
        ];
        let model = Stringly { layers, config, recorders: OutputRecorders::default() };
        let output = model.forward(input(), &ForwardKwargs::new().output_attentions(true)).expect("records");
        assert_eq!(paths(&output.attentions), ["layers.1"]);
    }
}
