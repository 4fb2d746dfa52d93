//! Requests that cannot be met, each with what it says.

use crate::model::*;
use burn::prelude::*;
use patching_core::prelude::*;

fn refused(kwargs: &ForwardKwargs) -> String {
    let context = with_memory();
    let error = ToyModel::tiny().forward(input(), &context, kwargs).expect_err("is refused");
    error.to_string()
}

fn refused_before_running(kwargs: &ForwardKwargs) -> String {
    let context = with_memory();
    let error = ToyModel::tiny().forward(input(), &context, kwargs).expect_err("is refused");
    assert!(context.wanted.borrow().is_empty(), "nothing ran");
    error.to_string()
}

#[test]
fn an_unknown_key_names_the_known_and_the_near() {
    let message = refused_before_running(&ForwardKwargs::new().output("atentions", true));
    assert_eq!(
        message,
        "`ToyModel` cannot record `atentions`: it declares `hidden_states`, `attentions`, `cross_attentions`; did you mean `attentions`?"
    );
    assert!(
        refused_before_running(&ForwardKwargs::new().output("output_attentions", true))
            .contains("did you mean `attentions`")
    );
}

#[test]
fn an_unknown_key_is_refused_also_when_it_is_off() {
    assert!(
        refused_before_running(&ForwardKwargs::new().output("router_logits", false))
            .contains("cannot record `router_logits`")
    );
}

#[test]
fn an_index_out_of_range_names_the_range() {
    for (flag, index) in
        [(Flag::from(4), "4"), (Flag::from(-5), "-5"), (Flag::from([0, 17]), "17"), (Flag::from(2..9), "9")]
    {
        let message = refused_before_running(&ForwardKwargs::new().output_hidden_states(flag));
        assert!(
            message.starts_with(&format!(
                "`hidden_states` has no value {index}: there are 4, valid are 0 to 3 and -4 to -1"
            )),
            "{message}"
        );
    }
}

#[test]
fn a_selection_of_nothing_is_refused() {
    for flag in [Flag::from(Vec::<usize>::new()), Flag::from(1..1), Flag::from(4..)] {
        assert_eq!(
            refused_before_running(&ForwardKwargs::new().output_hidden_states(flag)),
            "the selection for `hidden_states` selects nothing: leave the key out, or pass `false`"
        );
    }
}

#[test]
fn a_count_can_be_asserted() {
    let wrong = ForwardKwargs::new().output_attentions(true).expect("attentions", 12);
    assert_eq!(refused(&wrong), "`attentions` has 3 values, 12 were expected");
    let too_few = ForwardKwargs::new().output_attentions(true).expect("attentions", 2);
    assert_eq!(refused_before_running(&too_few), "`attentions` has 3 values, 2 were expected");
    let not_asked = ForwardKwargs::new().expect("attentions", 3);
    assert_eq!(refused_before_running(&not_asked), "`attentions` has 0 values, 3 were expected");
    let right = ForwardKwargs::new().output_attentions(0).expect("attentions", 3);
    assert!(ToyModel::tiny().forward(input(), &with_memory(), &right).is_ok());
    assert!(ToyModel::tiny().forward(input(), &with_memory(), &ForwardKwargs::new().expect("attentions", 0)).is_ok());
    // what only follows counts as well
    let following = ForwardKwargs::new().output_attentions(true).expect("cross_attentions", 3);
    assert!(ToyModel::tiny().forward(input(), &with_memory(), &following).is_ok());
    let error = ToyModel::tiny().forward(input(), &Context::default(), &following).expect_err("it did not run");
    assert_eq!(error.to_string(), "`cross_attentions` has 0 values, 3 were expected");
}

#[test]
fn a_slot_that_was_not_called_is_named() {
    let context = Context { skip: Some(1), ..with_memory() };
    let error = ToyModel::tiny()
        .forward(input(), &context, &ForwardKwargs::new().output_hidden_states(true))
        .expect_err("a layer is missing");
    assert!(
        error.to_string().starts_with("`hidden_states` was asked for, but `layers.1` was not called in this run"),
        "{error}"
    );
    // what comes before the missing layer does not depend on it
    let output = ToyModel::tiny()
        .forward(input(), &context, &ForwardKwargs::new().output_hidden_states([0, 1]))
        .expect("is there");
    assert_eq!(output.hidden_states.iter().count(), 2);
}

#[test]
fn cross_attention_that_only_follows_may_be_absent_but_not_when_named() {
    let without_memory = Context::default();
    let output = ToyModel::tiny()
        .forward(input(), &without_memory, &ForwardKwargs::new().output_attentions(true))
        .expect("runs");
    assert!(!output.cross_attentions.is_recorded());
    let error = ToyModel::tiny()
        .forward(input(), &without_memory, &ForwardKwargs::new().output_cross_attentions(true))
        .expect_err("was named");
    assert!(error.to_string().contains("`layers.0.crossattention` was not called"), "{error}");
}

#[test]
fn weights_that_a_kernel_did_not_give_are_an_error() {
    let context = Context { without_weights: true, ..with_memory() };
    let error = ToyModel::tiny()
        .forward(input(), &context, &ForwardKwargs::new().output_attentions(2))
        .expect_err("no weights");
    assert_eq!(
        error.to_string(),
        "`attentions` was asked for, but `layers.2.self_attn` returned no value for it: its attention implementation gives no weights; choose one that does, such as `eager`"
    );
}

#[derive(Module, Debug, CanRecordOutputs)]
pub struct Undeclared {
    norm: burn::nn::LayerNorm,
    #[module(skip)]
    config: ToyConfig,
    recorders: OutputRecorders,
}

impl Undeclared {
    #[capture_outputs]
    fn forward(&self, hidden_states: Tensor<3>, _kwargs: &ForwardKwargs) -> Result<ToyOutput, CaptureError> {
        Ok(ToyOutput::new(self.norm.forward(hidden_states)))
    }
}

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = "ToyBlok", attentions = OutputRecorder("ToyAttention", index = 5))]
pub struct Misnamed {
    block: Slot<ToyBlock>,
    #[module(skip)]
    config: ToyConfig,
    recorders: OutputRecorders,
}

impl Misnamed {
    #[capture_outputs]
    fn forward(&self, hidden_states: Tensor<3>, _kwargs: &ForwardKwargs) -> Result<ToyOutput, CaptureError> {
        Ok(ToyOutput::new(self.block.forward(hidden_states, &Context::default())))
    }
}

#[test]
fn a_model_without_a_declaration_says_so() {
    let model = Undeclared {
        norm: burn::nn::LayerNormConfig::new(4).init(&device()),
        config: ToyConfig::tiny(),
        recorders: OutputRecorders::default(),
    };
    assert!(model.forward(input(), &ForwardKwargs::new()).is_ok());
    let error = model.forward(input(), &ForwardKwargs::new().output_hidden_states(true)).expect_err("declares nothing");
    assert_eq!(
        error.to_string(),
        "`Undeclared` cannot record `hidden_states`: it declares nothing that can be recorded (`#[can_record_outputs(…)]`)"
    );
}

#[test]
fn names_that_match_no_slot_are_said_with_near_ones() {
    let model = Misnamed {
        block: ToyBlock::slot(&ToyConfig::tiny(), 0, &Init::new(&device())),
        config: ToyConfig::tiny(),
        recorders: OutputRecorders::default(),
    };
    let error = model.forward(input(), &ForwardKwargs::new().output_hidden_states(true)).expect_err("no such class");
    assert_eq!(
        error.to_string(),
        "nothing in this `Misnamed` matches `hidden_states`, which records element 0 of `ToyBlok`; its slots hold the classes `ToyAttention`, `ToyBlock`; did you mean `ToyBlock`?"
    );
    let error = model.forward(input(), &ForwardKwargs::new().output_attentions(true)).expect_err("no such element");
    assert_eq!(
        error.to_string(),
        "`attentions` records element 5 of `ToyAttention` at `block.self_attn`, which returns 2"
    );
}

#[test]
fn what_is_not_held_is_said() {
    let output = ToyModel::tiny()
        .forward(input(), &with_memory(), &ForwardKwargs::new().output_hidden_states([0, 2]))
        .expect("runs");
    assert_eq!(
        output.hidden_states.at(1).expect_err("not selected").to_string(),
        "there is no value 1: of 4 only [0, 2] were selected"
    );
    assert_eq!(
        output.attentions.at(0).expect_err("not asked for").to_string(),
        "there is no value 0: nothing was recorded, since the key was not asked for (`ForwardKwargs::output`)"
    );
}

#[test]
fn errors_name_what_was_asked_for() {
    assert!(refused(&ForwardKwargs::new().output_cross_attentions(9)).starts_with("`cross_attentions` has no value 9"));
}

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = ToyBlock)]
pub struct WithArguments {
    block: Slot<ToyBlock>,
    #[module(skip)]
    config: ToyConfig,
    recorders: OutputRecorders,
}

impl WithArguments {
    #[capture_outputs]
    fn forward(
        &self,
        hidden_states: Tensor<3>,
        output_hidden_states: Option<bool>,
        output_router_logits: Option<bool>,
        _kwargs: &ForwardKwargs,
    ) -> Result<ToyOutput, CaptureError> {
        Ok(ToyOutput::new(self.block.forward(hidden_states, &Context::default())))
    }
}

#[test]
fn a_flag_that_is_an_argument_counts_like_one_in_the_request() {
    let model = WithArguments {
        block: ToyBlock::slot(&ToyConfig::tiny(), 0, &Init::new(&device())),
        config: ToyConfig::tiny(),
        recorders: OutputRecorders::default(),
    };
    let output = model.forward(input(), Some(true), None, &ForwardKwargs::new()).expect("runs");
    assert_eq!(output.hidden_states.len(), 2);
    assert!(model.forward(input(), None, Some(false), &ForwardKwargs::new()).is_ok());
    let error = model.forward(input(), None, Some(true), &ForwardKwargs::new()).expect_err("not declared");
    assert!(error.to_string().starts_with("`WithArguments` cannot record `router_logits`"), "{error}");
}
