use crate::model::*;
use patching_core::prelude::*;

fn run(kwargs: &ForwardKwargs) -> Result<ToyOutput, CaptureError> {
    ToyModel::tiny().forward(input(), &with_memory(), kwargs)
}

fn at(position: usize, path: &str) -> (usize, String) {
    (position, path.to_owned())
}

#[test]
fn nothing_asked_for_records_nothing() {
    let output = run(&ForwardKwargs::new()).expect("runs");
    assert!(!output.hidden_states.is_recorded() && !output.attentions.is_recorded());
    assert_eq!(output.to_tuple().names().collect::<Vec<_>>(), ["last_hidden_state"]);
}

#[test]
fn all_hidden_states_begin_with_the_input_and_end_tied() {
    let output = run(&ForwardKwargs::new().output_hidden_states(true)).expect("runs");
    assert_eq!(
        paths(&output.hidden_states),
        [at(0, "layers.0 (input)"), at(1, "layers.0"), at(2, "layers.1"), at(3, "layers.2")]
    );
    assert_eq!(bits(output.hidden_states.at(0).expect("kept")), bits(&input()));
    assert_eq!(bits(output.hidden_states.at(-1).expect("kept")), bits(&output.last_hidden_state));
}

#[test]
fn self_and_cross_attention_of_one_class_are_told_apart() {
    let output = run(&ForwardKwargs::new().output_attentions(true)).expect("runs");
    assert_eq!(
        paths(&output.attentions),
        [at(0, "layers.0.self_attn"), at(1, "layers.1.self_attn"), at(2, "layers.2.self_attn")]
    );
    assert_eq!(
        paths(&output.cross_attentions),
        [at(0, "layers.0.crossattention"), at(1, "layers.1.crossattention"), at(2, "layers.2.crossattention")]
    );
    assert_eq!(output.to_tuple().names().collect::<Vec<_>>(), ["last_hidden_state", "attentions", "cross_attentions"]);
}

#[test]
fn tuples_have_recorded_keys_in_the_order_of_declaration() {
    let output =
        run(&ForwardKwargs::new().output_attentions(true).output_hidden_states(true).use_cache(true)).expect("runs");
    assert_eq!(
        output.to_tuple().names().collect::<Vec<_>>(),
        ["last_hidden_state", "cache", "hidden_states", "attentions", "cross_attentions"]
    );
}

#[test]
fn weights_are_wanted_only_where_they_are_selected() {
    let context = Context::default();
    let output = ToyModel::tiny()
        .forward(input(), &context, &ForwardKwargs::new().output_attentions(-1).output_hidden_states(true))
        .expect("runs");
    assert_eq!(paths(&output.attentions), [at(2, "layers.2.self_attn")]);
    assert_eq!(*context.wanted.borrow(), [false, false, true]);
    assert_eq!(output.attentions.len(), 3);
}
