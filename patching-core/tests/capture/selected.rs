//! Selections: what is kept, at which position, and what is freed.

use crate::model::*;
use burn::prelude::*;
use burn::tensor::{DType, FloatDType};
use patching_core::capture::Element;
use patching_core::capture::Keep;
use patching_core::prelude::*;
use std::sync::Arc;

fn positions(flag: impl Into<Flag>) -> (Vec<usize>, usize) {
    let output = ToyModel::tiny()
        .forward(input(), &with_memory(), &ForwardKwargs::new().output_hidden_states(flag))
        .expect("runs");
    (output.hidden_states.iter().map(|(position, ..)| position).collect(), output.hidden_states.len())
}

#[test]
fn every_form_of_selection_keeps_its_positions() {
    assert_eq!(positions(0), (vec![0], 4));
    assert_eq!(positions(-1), (vec![3], 4));
    assert_eq!(positions([3, 0]), (vec![0, 3], 4));
    assert_eq!(positions(1..3), (vec![1, 2], 4));
    assert_eq!(positions(2..), (vec![2, 3], 4));
    assert_eq!(positions(..2), (vec![0, 1], 4));
    assert_eq!(positions(-3..=-2), (vec![1, 2], 4));
    assert_eq!(positions(..), (vec![0, 1, 2, 3], 4));
    assert_eq!(positions(Some([1])), (vec![1], 4));
}

#[test]
fn a_selected_value_is_the_one_that_all_would_hold() {
    let model = ToyModel::tiny();
    let all = model
        .forward(input(), &with_memory(), &ForwardKwargs::new().output_hidden_states(true).output_attentions(true))
        .expect("runs");
    let some = model
        .forward(input(), &with_memory(), &ForwardKwargs::new().output_hidden_states([1, -1]).output_attentions(1))
        .expect("runs");
    for position in [1, 3] {
        assert_eq!(
            bits(&all.hidden_states.get(position).cloned().expect("kept")),
            bits(&some.hidden_states.get(position).cloned().expect("kept"))
        );
    }
    assert_eq!(bits(all.attentions.at(1).expect("kept")), bits(some.attentions.at(1).expect("kept")));
    assert_eq!(bits(all.cross_attentions.at(1).expect("kept")), bits(some.cross_attentions.at(1).expect("kept")));
    assert_eq!(bits(&all.last_hidden_state), bits(&some.last_hidden_state));
}

/// A call that computes with what it records asks for it as it is, and hands it on as its caller wants it.
#[test]
fn what_was_computed_with_is_handed_on_as_asked() {
    let asked = ForwardKwargs::new().output_hidden_states(true).cast(FloatDType::F64);
    let as_asked = ToyModel::tiny().forward(input(), &with_memory(), &asked).expect("runs").hidden_states;
    let mut found =
        ToyModel::tiny().forward(input(), &with_memory(), &asked.clone().as_they_are()).expect("runs").hidden_states;
    let plain = bits(found.at(1).expect("kept"));
    assert!(found.iter().all(|(_, _, state)| state.dtype() == DType::F32));
    found.retain(|position| position % 2 == 1);
    let found = found.kept(asked.keep());
    assert_eq!((found.len(), found.iter().map(|(at, ..)| at).collect::<Vec<_>>()), (4, vec![1, 3]));
    assert_eq!(paths(&found), [paths(&as_asked)[1].clone(), paths(&as_asked)[3].clone()]);
    let state = found.at(1).expect("kept").clone();
    assert_eq!(state.dtype(), DType::F64);
    assert_eq!(bits(&state.cast(DType::F32)), plain);
}

#[test]
fn a_follower_can_be_switched_off_or_selected_on_its_own() {
    let run = |kwargs| ToyModel::tiny().forward(input(), &with_memory(), &kwargs).expect("runs");
    let off = run(ForwardKwargs::new().output_attentions(true).output_cross_attentions(false));
    assert!(off.attentions.is_recorded() && !off.cross_attentions.is_recorded());
    let alone = run(ForwardKwargs::new().output_cross_attentions([0]));
    assert!(!alone.attentions.is_recorded());
    assert_eq!(paths(&alone.cross_attentions), [(0, "layers.0.crossattention".to_owned())]);
}

#[test]
fn the_last_hidden_state_is_tied_by_the_config_before_the_macro() {
    let untied = ToyConfig { tie_last_hidden_states: Some(false), ..ToyConfig::tiny() };
    let output = ToyModel::new(&untied, &Init::new(&device()))
        .forward(input(), &with_memory(), &ForwardKwargs::new().output_hidden_states(-1))
        .expect("runs");
    assert_ne!(bits(output.hidden_states.at(-1).expect("kept")), bits(&output.last_hidden_state));
}

#[test]
fn recorded_tensors_can_be_cast() {
    let kwargs = ForwardKwargs::new().output_hidden_states(true).cast(burn::tensor::FloatDType::F16);
    let output = ToyModel::tiny().forward(input(), &with_memory(), &kwargs).expect("runs");
    assert!(output.hidden_states.iter().all(|(_, _, tensor)| tensor.dtype() == burn::tensor::DType::F16));
    assert_eq!(output.last_hidden_state.dtype(), burn::tensor::DType::F32);
}

/// A value that knows how many of its kind are alive.
#[derive(Clone)]
pub struct Tracked(Arc<()>);

impl Element for Tracked {
    type Value = Self;
    fn value(&self, _: Keep) -> Option<Self> {
        Some(self.clone())
    }
}

#[derive(Debug, Default)]
pub struct Alive {
    made: std::cell::RefCell<Vec<std::sync::Weak<()>>>,
    seen: std::cell::RefCell<Vec<usize>>,
}

#[derive(Module, Debug)]
pub struct TrackedLayer {
    layer: usize,
}

#[module_class]
impl TrackedLayer {
    pub fn new(layer: usize, _init: &Init) -> Self {
        Self { layer }
    }

    pub fn forward(&self, hidden_states: Tensor<1>, alive: &Alive) -> (Tensor<1>, Tracked) {
        alive.seen.borrow_mut().push(alive.made.borrow().iter().filter(|made| made.strong_count() > 0).count());
        let value = Tracked(Arc::new(()));
        alive.made.borrow_mut().push(Arc::downgrade(&value.0));
        (hidden_states, value)
    }
}

#[derive(ModelOutput)]
pub struct TrackedOutput {
    last: Tensor<1>,
    attentions: Captured<Tracked>,
}

impl OutputField for Tracked {
    fn output_value(&self) -> Option<patching_core::capture::OutputValue> {
        None
    }
}

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(attentions = TrackedLayer)]
pub struct TrackedModel {
    layers: Vec<Slot<TrackedLayer>>,
    #[module(skip)]
    config: ToyConfig,
    recorders: OutputRecorders,
}

impl TrackedModel {
    #[capture_outputs]
    fn forward(
        &self,
        hidden_states: Tensor<1>,
        alive: &Alive,
        _kwargs: &ForwardKwargs,
    ) -> Result<TrackedOutput, CaptureError> {
        let mut hidden_states = hidden_states;
        for layer in &self.layers {
            (hidden_states, _) = layer.forward(hidden_states, alive);
        }
        Ok(TrackedOutput::new(hidden_states))
    }
}

#[test]
fn what_is_not_selected_is_freed_while_the_model_runs() {
    let init = Init::new(&device());
    let model = TrackedModel {
        layers: (0..5).map(|layer| TrackedLayer::slot(layer, &init)).collect(),
        config: ToyConfig::tiny(),
        recorders: OutputRecorders::default(),
    };
    let run = |kwargs: ForwardKwargs| {
        let alive = Alive::default();
        let output = model.forward(Tensor::ones([1], &device()), &alive, &kwargs).expect("runs");
        assert_eq!(output.last.dims(), [1]);
        (alive.seen.take(), output.attentions.iter().map(|(position, ..)| position).collect::<Vec<_>>())
    };
    assert_eq!(run(ForwardKwargs::new()), (vec![0, 0, 0, 0, 0], vec![]));
    assert_eq!(run(ForwardKwargs::new().output_attentions([1, -1])), (vec![0, 0, 1, 1, 1], vec![1, 4]));
    assert_eq!(run(ForwardKwargs::new().output_attentions(true)), (vec![0, 1, 2, 3, 4], vec![0, 1, 2, 3, 4]));
}

/// Two kinds of attention of which one is seldom.
#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(
    attentions = OutputRecorder(ToyAttention, layer_name = "blocks"),
    cross_attentions = OutputRecorder(ToyAttention, layer_name = "last"),
)]
struct Seldom {
    blocks: Vec<Slot<ToyAttention>>,
    last: Slot<ToyAttention>,
    #[module(skip)]
    config: ToyConfig,
    recorders: OutputRecorders,
}

impl Seldom {
    #[capture_outputs]
    fn forward(&self, hidden_states: Tensor<3>, kwargs: &ForwardKwargs) -> Result<ToyOutput, CaptureError> {
        let mut hidden_states = hidden_states;
        for attention in self.blocks.iter().chain([&self.last]) {
            (hidden_states, _) = attention.forward(hidden_states, &Context::default());
        }
        Ok(ToyOutput::new(hidden_states))
    }
}

#[test]
fn a_follower_selects_what_it_has() {
    let (config, init) = (ToyConfig::tiny(), Init::new(&device()));
    let slot = || ToyAttention::slot(&config, &init);
    let blocks = vec![slot(), slot(), slot()];
    let model = Seldom { blocks, last: slot(), config: config.clone(), recorders: OutputRecorders::default() };
    let run = |flag: Flag| {
        let output = model.forward(input(), &ForwardKwargs::new().output_attentions(flag)).expect("runs");
        let names: Vec<_> = output.to_tuple().names().collect();
        (paths(&output.attentions).len(), paths(&output.cross_attentions).len(), names.contains(&"cross_attentions"))
    };
    assert_eq!(run([0, -1].into()), (2, 1, true));
    assert_eq!(run([0, 2].into()), (2, 1, true));
    // nothing of it was selected: left out, and not an empty sequence
    assert_eq!(run(2.into()), (1, 0, false));
}
