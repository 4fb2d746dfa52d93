//! Modules that one forward calls several times.

use crate::model::*;
use burn::prelude::*;
use patching_core::prelude::*;

macro_rules! shared_layer_model {
    ($name:ident, $recorder:tt) => {
        shared_layer_model!(@ $name, #[can_record_outputs $recorder]);
    };
    (@ $name:ident, #[$declared:meta]) => {
        #[derive(Module, Debug, CanRecordOutputs)]
        #[$declared]
        pub struct $name {
            layer: Slot<ToyBlock>,
            #[module(skip)]
            config: ToyConfig,
            recorders: OutputRecorders,
        }

        impl $name {
            fn make(layers: usize) -> Self {
                let config = ToyConfig { layers, ..ToyConfig::tiny() };
                Self { layer: ToyBlock::slot(&config, 0, &Init::new(&device())), config, recorders: OutputRecorders::default() }
            }

            #[capture_outputs(tie_last_hidden_states = false)]
            fn forward(&self, hidden_states: Tensor<3>, kwargs: &ForwardKwargs) -> Result<ToyOutput, CaptureError> {
                let mut hidden_states = hidden_states;
                for _ in 0..self.config.layers {
                    hidden_states = self.layer.forward(hidden_states, &Context::default());
                }
                Ok(ToyOutput::new(hidden_states))
            }
        }
    };
}

shared_layer_model!(
    Uncounted,
    (hidden_states = ToyBlock, attentions = OutputRecorder(ToyAttention, layer_name = "self_attn"))
);
shared_layer_model!(
    Counted,
    (
        hidden_states = OutputRecorder(ToyBlock, num_hidden_layers_key = "layers"),
        attentions = OutputRecorder(ToyAttention, layer_name = "self_attn", num_hidden_layers_key = "layers")
    )
);

fn positions<T>(captured: &Captured<T>) -> (Vec<usize>, usize) {
    (captured.iter().map(|(position, ..)| position).collect(), captured.len())
}

#[test]
fn every_call_records_in_order_of_execution() {
    let output = Uncounted::make(3)
        .forward(input(), &ForwardKwargs::new().output_hidden_states(true).output_attentions(true))
        .expect("runs");
    assert_eq!(positions(&output.hidden_states), (vec![0, 1, 2, 3], 4));
    assert_eq!(positions(&output.attentions), (vec![0, 1, 2], 3));
    assert_eq!(bits(output.hidden_states.at(-1).expect("kept")), bits(&output.last_hidden_state));
    assert_ne!(bits(output.hidden_states.at(1).expect("kept")), bits(output.hidden_states.at(2).expect("kept")));
}

#[test]
fn the_true_count_can_be_asserted() {
    let run = |count| {
        let kwargs = ForwardKwargs::new().output_attentions(true).expect("attentions", count);
        Uncounted::make(3).forward(input(), &kwargs).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(run(3), Ok(()));
    assert_eq!(run(1), Err("`attentions` has 3 values, 1 were expected".to_owned()));
    assert_eq!(run(4), Err("`attentions` has 3 values, 4 were expected".to_owned()));
}

#[test]
fn negative_indices_count_from_what_was_really_produced() {
    let output = Uncounted::make(5)
        .forward(input(), &ForwardKwargs::new().output_hidden_states(-1).output_attentions(-1))
        .expect("runs");
    assert_eq!(positions(&output.hidden_states), (vec![5], 6));
    assert_eq!(bits(output.hidden_states.at(-1).expect("kept")), bits(&output.last_hidden_state));
    assert_eq!(positions(&output.attentions), (vec![4], 5));
}

#[test]
fn a_declared_count_makes_every_selection_known_beforehand() {
    let model = Counted::make(5);
    let output =
        model.forward(input(), &ForwardKwargs::new().output_hidden_states([1, -2]).output_attentions(3)).expect("runs");
    assert_eq!(positions(&output.hidden_states), (vec![1, 4], 6));
    assert_eq!(positions(&output.attentions), (vec![3], 5));
    let error = model.forward(input(), &ForwardKwargs::new().output_hidden_states(6)).expect_err("out of range");
    assert!(error.to_string().contains("there are 6, valid are 0 to 5 and -6 to -1"), "{error}");
}

#[test]
fn without_a_declared_count_the_error_says_how_to_declare_it() {
    let error =
        Uncounted::make(5).forward(input(), &ForwardKwargs::new().output_hidden_states(4)).expect_err("not predicted");
    assert!(error.to_string().contains("declare the number with `num_hidden_layers_key`"), "{error}");
}

#[test]
fn an_early_exit_of_a_shared_layer_stops_at_the_right_call() {
    let mut captures =
        Counted::make(5).forward_captures(input(), &ForwardKwargs::new().output_hidden_states(3)).expect("runs");
    let hidden_states = captures.take::<Tensor<3>>("hidden_states").expect("asked for");
    assert_eq!(positions(&hidden_states), (vec![3], 6));
    let full = Counted::make(5);
    let all = full.forward(input(), &ForwardKwargs::new().output_hidden_states(true)).expect("runs");
    let mut some = full.forward_captures(input(), &ForwardKwargs::new().output_hidden_states(3)).expect("runs");
    assert_eq!(
        bits(some.take::<Tensor<3>>("hidden_states").expect("asked for").at(3).expect("kept")),
        bits(all.hidden_states.at(3).expect("kept"))
    );
}

#[test]
fn a_range_without_an_end_goes_on_as_long_as_the_calls_do() {
    let model = Uncounted::make(4);
    for (flag, expected) in [
        (Flag::from(0..), vec![0, 1, 2, 3, 4]),
        ((1..).into(), vec![1, 2, 3, 4]),
        ("0..=-1".parse().expect("a range"), vec![0, 1, 2, 3, 4]),
    ] {
        let kwargs = ForwardKwargs::new().output_hidden_states(flag.clone());
        let output = model.forward(input(), &kwargs).expect("runs");
        assert_eq!(positions(&output.hidden_states), (expected.clone(), 5), "{flag:?}");
        let mut captures = model.forward_captures(input(), &kwargs).expect("runs");
        let captured = captures.take::<Tensor<3>>("hidden_states").expect("asked for");
        assert_eq!(positions(&captured), (expected, 5), "{flag:?}");
    }
    let output = model.forward(input(), &ForwardKwargs::new().output_attentions(0..)).expect("runs");
    assert_eq!(positions(&output.attentions), (vec![0, 1, 2, 3], 4));
    assert_eq!(output.attentions.at(-1).expect("kept").dims(), [1, 2, 2]);
}

shared_layer_model!(
    Followed,
    (
        attentions = OutputRecorder(ToyAttention, layer_name = "self_attn"),
        cross_attentions = OutputRecorder(ToyAttention, layer_name = "self_attn")
    )
);

#[test]
fn a_follower_counts_from_the_end_of_what_was_really_produced() {
    let output = Followed::make(3).forward(input(), &ForwardKwargs::new().output_attentions(-1)).expect("runs");
    assert_eq!(positions(&output.attentions), (vec![2], 3));
    assert_eq!(positions(&output.cross_attentions), (vec![2], 3));
}
