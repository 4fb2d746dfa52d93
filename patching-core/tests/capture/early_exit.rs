//! Runs that stop when they have what they want.

use crate::model::*;
use burn::prelude::*;
use patching_core::prelude::*;

fn calls(context: &Context) -> usize {
    context.wanted.borrow().len()
}

#[test]
fn a_prefix_of_the_layers_ends_the_run() {
    let model = ToyModel::tiny();
    let full =
        model.forward(input(), &Context::default(), &ForwardKwargs::new().output_hidden_states(true)).expect("runs");
    for (selection, layers) in [(vec![0], 1), (vec![1], 1), (vec![0, 2], 2)] {
        let context = Context::default();
        let kwargs = ForwardKwargs::new().output_hidden_states(selection.clone());
        let mut captures = model.forward_captures(input(), &context, &kwargs).expect("runs");
        let hidden_states = captures.take::<Tensor<3>>("hidden_states").expect("asked for");
        assert_eq!(calls(&context), layers, "{selection:?}");
        assert_eq!(hidden_states.len(), 4);
        for position in selection {
            assert_eq!(
                bits(hidden_states.get(position).expect("kept")),
                bits(full.hidden_states.get(position).expect("kept"))
            );
        }
    }
}

#[test]
fn the_tied_last_hidden_state_needs_the_whole_run() {
    let model = ToyModel::tiny();
    let full = model.forward(input(), &Context::default(), &ForwardKwargs::new()).expect("runs");
    for flag in [Flag::from(3), Flag::from(-1), Flag::On] {
        let mut captures = model
            .forward_captures(input(), &Context::default(), &ForwardKwargs::new().output_hidden_states(flag))
            .expect("runs");
        let hidden_states = captures.take::<Tensor<3>>("hidden_states").expect("asked for");
        assert_eq!(bits(hidden_states.at(-1).expect("kept")), bits(&full.last_hidden_state));
    }
}

#[test]
fn several_keys_are_all_waited_for() {
    let context = with_memory();
    let kwargs = ForwardKwargs::new().output_hidden_states(0).output_cross_attentions(1);
    let mut captures = ToyModel::tiny().forward_captures(input(), &context, &kwargs).expect("runs");
    assert_eq!(captures.keys().collect::<Vec<_>>(), ["cross_attentions", "hidden_states"]);
    assert_eq!(
        paths(&captures.take::<Tensor<3>>("cross_attentions").expect("asked for")),
        [(1, "layers.1.crossattention".to_owned())]
    );
    assert_eq!(calls(&context), 4);
    assert!(captures.take::<Tensor<3>>("cross_attentions").is_err(), "taken before");
    assert!(captures.take::<Tensor<2>>("hidden_states").is_err(), "another rank");
}

#[test]
fn errors_are_the_same_as_in_a_whole_run() {
    let error = |kwargs: ForwardKwargs| {
        ToyModel::tiny().forward_captures(input(), &Context::default(), &kwargs).err().expect("refused").to_string()
    };
    assert!(error(ForwardKwargs::new().output_hidden_states(9)).starts_with("`hidden_states` has no value 9"));
    assert!(error(ForwardKwargs::new().output("hidden", 0)).contains("cannot record `hidden`"));
}

#[test]
fn a_plan_runs_nothing_and_says_where_values_come_from() {
    let plan = ToyModel::tiny()
        .forward_plan(&ForwardKwargs::new().output_hidden_states([0, -1]).output_attentions(1))
        .expect("can be met");
    assert_eq!(
        plan.keys().iter().map(|key| (key.key(), key.len())).collect::<Vec<_>>(),
        [("hidden_states", 4), ("attentions", 3), ("cross_attentions", 3)]
    );
    let kept: Vec<_> = plan.keys()[0]
        .values()
        .filter(|value| value.is_kept)
        .map(|value| (value.position, value.path.to_owned(), value.is_input))
        .collect();
    assert_eq!(kept, [(0, "layers.0".to_owned(), true), (3, "layers.2".to_owned(), false)]);
    let text = plan.to_string();
    assert!(text.contains("attentions (1 of 3)") && text.contains("1  layers.1.self_attn"), "{text}");
}
