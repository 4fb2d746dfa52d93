//! Base models inside base models: each records by its own declaration.

use crate::model::*;
use burn::prelude::*;
use patching_core::capture::OutputValue;
use patching_core::prelude::*;

#[derive(ModelOutput)]
pub struct Pair {
    pub last_hidden_state: Tensor<3>,
    pub tower_output: Option<ToyOutput>,
    pub hidden_states: Captured<Tensor<3>>,
    pub attentions: Captured<Tensor<3>>,
}

/// The tower's field comes before or after the outer model's own: the order of the walk must not matter.
macro_rules! composite {
    ($name:ident { $($field:ident: $Type:ty),* }) => {
        #[derive(Module, Debug, CanRecordOutputs)]
        #[can_record_outputs(hidden_states = ToyBlock, attentions = ToyAttention)]
        pub struct $name {
            $($field: $Type,)*
            #[module(skip)]
            config: ToyConfig,
        }

        impl $name {
            fn make() -> Self {
                Self {
                    tower: ToyModel::tiny(),
                    block: ToyBlock::slot(&ToyConfig::tiny(), 0, &Init::new(&device())),
                    recorders: OutputRecorders::default(),
                    config: ToyConfig::tiny(),
                }
            }

            #[capture_outputs(kwargs = kwargs)]
            fn forward(&self, hidden_states: Tensor<3>, tower: &ForwardKwargs, kwargs: &ForwardKwargs) -> Result<Pair, CaptureError> {
                let tower = self.tower.forward(hidden_states, &Context::default(), tower)?;
                let hidden_states = self.block.forward(tower.last_hidden_state.clone(), &Context::default());
                let again = self.tower.forward(hidden_states.clone(), &Context::default(), &ForwardKwargs::new())?;
                assert!(!again.hidden_states.is_recorded());
                let mut pair = Pair::new(hidden_states);
                pair.tower_output = Some(tower);
                Ok(pair)
            }
        }
    };
}

mod tower_first {
    use super::*;
    composite!(Composite { tower: ToyModel, block: Slot<ToyBlock>, recorders: OutputRecorders });
    pub fn run(tower: &ForwardKwargs, outer: &ForwardKwargs) -> Pair {
        Composite::make().forward(input(), tower, outer).expect("runs")
    }
}

mod tower_last {
    use super::*;
    composite!(Composite { recorders: OutputRecorders, block: Slot<ToyBlock>, tower: ToyModel });
    pub fn run(tower: &ForwardKwargs, outer: &ForwardKwargs) -> Pair {
        Composite::make().forward(input(), tower, outer).expect("runs")
    }
}

fn counts(pair: &Pair) -> (usize, usize) {
    let inner = pair.tower_output.as_ref().expect("there");
    (inner.hidden_states.iter().count(), pair.hidden_states.iter().count())
}

#[test]
fn each_model_records_what_it_was_asked_and_sees_nothing_of_the_other() {
    let (on, off) = (ForwardKwargs::new().output_hidden_states(true), ForwardKwargs::new());
    for run in [tower_first::run, tower_last::run] {
        assert_eq!(counts(&run(&on, &off)), (4, 0));
        assert_eq!(counts(&run(&off, &on)), (0, 2));
        let both = run(&on, &on);
        assert_eq!(counts(&both), (4, 2));
        assert_eq!(paths(&both.hidden_states), [(0, "block (input)".to_owned()), (1, "block".to_owned())]);
    }
}

#[test]
fn a_nested_output_is_nested_in_the_tuple() {
    let on = ForwardKwargs::new().output_hidden_states(true);
    let tuple = tower_first::run(&on, &on).to_tuple();
    assert_eq!(tuple.names().collect::<Vec<_>>(), ["last_hidden_state", "tower_output", "hidden_states"]);
    let Some(OutputValue::Nested(inner)) = tuple.get(1) else { panic!("{tuple:?}") };
    assert_eq!(inner.names().collect::<Vec<_>>(), ["last_hidden_state", "hidden_states"]);
}

#[derive(ModelOutput)]
pub struct Head {
    logits: Tensor<3>,
    attentions: Captured<Tensor<3>>,
    hidden_states: Captured<Tensor<3>>,
    cross_attentions: Captured<Tensor<3>>,
}

#[derive(ModelOutput, Debug)]
pub struct NarrowHead {
    logits: Tensor<3>,
    hidden_states: Captured<Tensor<3>>,
}

#[test]
fn a_head_passes_everything_on_in_the_order_of_its_own_fields() {
    let kwargs = ForwardKwargs::new().output_hidden_states([0, -1]).output_attentions(true);
    let mut base = ToyModel::tiny().forward(input(), &with_memory(), &kwargs).expect("runs");
    let mut head = Head::new(base.last_hidden_state.clone());
    base.pass_on(&mut head).expect("has the fields");
    assert_eq!(
        head.to_tuple().names().collect::<Vec<_>>(),
        ["logits", "attentions", "hidden_states", "cross_attentions"]
    );
    assert_eq!((head.hidden_states.len(), head.attentions.len(), head.cross_attentions.len()), (4, 3, 3));
    assert!(head.hidden_states.get(1).is_none() && head.hidden_states.get(3).is_some());
    assert_eq!(head.logits.dims(), [1, 2, 4]);
}

#[test]
fn a_head_without_the_field_is_an_error() {
    let mut base =
        ToyModel::tiny().forward(input(), &with_memory(), &ForwardKwargs::new().output_attentions(true)).expect("runs");
    let mut head = NarrowHead::new(base.last_hidden_state.clone());
    let error = base.pass_on(&mut head).expect_err("would go missing");
    assert_eq!(error.to_string(), "`NarrowHead` has no field for the recorded `attentions`; it has `hidden_states`");
    assert!(!head.hidden_states.is_recorded() && head.logits.dims() == [1, 2, 4]);
}
