//! State lives in the call: threads, panics and errors leave nothing behind.

use crate::model::*;
use burn::prelude::*;
use patching_core::capture::{Scope, is_wanted};
use patching_core::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;

#[test]
fn sixteen_threads_with_different_requests_get_what_each_asked_for() {
    let model = ToyModel::tiny();
    let requests: Vec<(ForwardKwargs, Vec<usize>, Vec<usize>)> = (0..16)
        .map(|n| match n % 4 {
            0 => (ForwardKwargs::new(), vec![], vec![]),
            1 => (ForwardKwargs::new().output_hidden_states(true), vec![0, 1, 2, 3], vec![]),
            2 => (ForwardKwargs::new().output_attentions([n % 3]), vec![], vec![n % 3]),
            _ => (ForwardKwargs::new().output_hidden_states(-1).output_attentions(true), vec![3], vec![0, 1, 2]),
        })
        .collect();
    let alone: Vec<Vec<u32>> = requests
        .iter()
        .map(|(kwargs, ..)| bits(&model.forward(input(), &with_memory(), kwargs).expect("runs").last_hidden_state))
        .collect();
    std::thread::scope(|threads| {
        for ((kwargs, hidden_states, attentions), alone) in requests.iter().zip(&alone) {
            let model = &model;
            threads.spawn(move || {
                for _ in 0..50 {
                    let output = model.forward(input(), &with_memory(), kwargs).expect("runs");
                    let positions = |captured: &Captured<Tensor<3>>| {
                        captured.iter().map(|(position, ..)| position).collect::<Vec<_>>()
                    };
                    assert_eq!(&positions(&output.hidden_states), hidden_states);
                    assert_eq!(&positions(&output.attentions), attentions);
                    assert_eq!(&bits(&output.last_hidden_state), alone);
                }
            });
        }
    });
}

#[test]
fn a_panic_in_a_layer_leaves_nothing_behind() {
    let model = ToyModel::tiny();
    let everything = ForwardKwargs::new().output_hidden_states(true).output_attentions(true);
    let context = Context { panic_at: Some(1), ..with_memory() };
    assert!(catch_unwind(AssertUnwindSafe(|| model.forward(input(), &context, &everything))).is_err());
    let context = with_memory();
    let output = model.forward(input(), &context, &ForwardKwargs::new()).expect("runs");
    assert!(!output.hidden_states.is_recorded() && !output.attentions.is_recorded());
    assert!(context.wanted.borrow().iter().all(|wanted| !wanted));
    assert!(!is_wanted(0) && !is_wanted(1));
    assert_eq!(model.forward(input(), &with_memory(), &everything).expect("runs").hidden_states.len(), 4);
}

fn failing() -> Failing {
    let block = ToyBlock::slot(&ToyConfig::tiny(), 0, &Init::new(&device()));
    Failing { inner: ToyModel::tiny(), block, config: ToyConfig::tiny(), recorders: OutputRecorders::default() }
}

#[test]
fn an_error_in_forward_is_the_callers_and_leaves_nothing_behind() {
    let model = failing();
    for kwargs in [ForwardKwargs::new(), ForwardKwargs::new().output_hidden_states(true)] {
        assert!(matches!(model.forward(input(), &kwargs), Err(Failure::Purpose)));
        assert!(
            !model
                .inner
                .forward(input(), &Context::default(), &ForwardKwargs::new())
                .expect("runs")
                .hidden_states
                .is_recorded()
        );
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Capture(#[from] CaptureError),
    #[error("failed on purpose")]
    Purpose,
}

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = ToyBlock, attentions = OutputRecorder(ToyAttention, layer_name = "inner"))]
pub struct Failing {
    inner: ToyModel,
    block: Slot<ToyBlock>,
    #[module(skip)]
    config: ToyConfig,
    recorders: OutputRecorders,
}

impl Failing {
    #[capture_outputs]
    fn forward(&self, hidden_states: Tensor<3>, _kwargs: &ForwardKwargs) -> Result<ToyOutput, Failure> {
        let inner = self.inner.forward(hidden_states, &Context::default(), &ForwardKwargs::new())?;
        self.block.forward(inner.last_hidden_state, &Context::default());
        Err(Failure::Purpose)
    }
}

#[test]
fn a_request_for_slots_that_are_all_an_inner_models_is_refused() {
    let error = failing().forward(input(), &ForwardKwargs::new().output_attentions(true)).expect_err("refused");
    assert!(error.to_string().starts_with("nothing in this `Failing` matches `attentions`"), "{error}");
}

/// Runs its layers on a thread of their own.
#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = ToyBlock)]
pub struct Threaded {
    layers: Vec<Slot<ToyBlock>>,
    #[module(skip)]
    config: ToyConfig,
    recorders: OutputRecorders,
    carry: bool,
}

impl Threaded {
    #[capture_outputs]
    fn forward(&self, hidden_states: Tensor<3>, _kwargs: &ForwardKwargs) -> Result<ToyOutput, CaptureError> {
        let layers = || {
            self.layers
                .iter()
                .fold(hidden_states.clone(), |hidden_states, layer| layer.forward(hidden_states, &Context::default()))
        };
        let scope = Scope::current();
        let hidden_states = std::thread::scope(|threads| {
            let worker = threads.spawn(|| if self.carry { scope.enter(layers) } else { layers() });
            worker.join().expect("no panic")
        });
        Ok(ToyOutput::new(hidden_states))
    }
}

fn threaded(carry: bool) -> Threaded {
    let config = ToyConfig::tiny();
    let layers = (0..2).map(|layer| ToyBlock::slot(&config, layer, &Init::new(&device()))).collect();
    Threaded { layers, config, recorders: OutputRecorders::default(), carry }
}

#[test]
fn a_scope_can_be_carried_into_a_worker_thread() {
    let output = threaded(true).forward(input(), &ForwardKwargs::new().output_hidden_states(true)).expect("recorded");
    assert_eq!(
        paths(&output.hidden_states),
        [(0, "layers.0 (input)".to_owned()), (1, "layers.0".to_owned()), (2, "layers.1".to_owned())]
    );
}

#[test]
fn layers_on_a_thread_without_the_scope_are_an_error_not_a_silence() {
    let error =
        threaded(false).forward(input(), &ForwardKwargs::new().output_hidden_states(true)).expect_err("not seen");
    assert!(
        error.to_string().contains("`layers.0` was not called in this run (a thread started by `forward`"),
        "{error}"
    );
}

#[test]
fn a_layer_replaced_after_a_capture_is_seen_by_the_next() {
    let mut model = ToyModel::tiny();
    let kwargs = ForwardKwargs::new().output_hidden_states(true);
    model.forward(input(), &with_memory(), &kwargs).expect("runs");
    model.layers[1] = ToyBlock::slot(&ToyConfig::tiny(), 1, &Init::new(&device()));
    model.layers.push(ToyBlock::slot(&ToyConfig::tiny(), 3, &Init::new(&device())));
    let output = model.forward(input(), &with_memory(), &kwargs).expect("runs");
    assert_eq!(output.hidden_states.len(), 5);
    assert_eq!(output.hidden_states.iter().last().map(|(_, path, _)| path.to_owned()), Some("layers.3".to_owned()));
}

#[test]
fn recording_changes_no_bit_of_the_output() {
    let model = ToyModel::tiny();
    let off = model.forward(input(), &with_memory(), &ForwardKwargs::new()).expect("runs");
    let on = model
        .forward(input(), &with_memory(), &ForwardKwargs::new().output_hidden_states(true).output_attentions(true))
        .expect("runs");
    assert_eq!(bits(&off.last_hidden_state), bits(&on.last_hidden_state));
}

/// Attentions that run at the same time, or one inside the other.
#[derive(Module, Debug)]
struct Lazy {
    inner: Option<Slot<Lazy>>,
}

#[module_class]
impl Lazy {
    fn new(depth: usize, init: &Init) -> Self {
        Self { inner: (depth > 0).then(|| Lazy::slot(depth - 1, init)) }
    }

    /// The second element only if somebody wants it.
    fn forward(&self, hidden_states: Tensor<3>, begun: &Barrier) -> (Tensor<3>, Option<Tensor<3>>) {
        let wanted = is_wanted(1);
        begun.wait();
        if let Some(inner) = &self.inner {
            inner.forward(hidden_states.clone(), begun);
        }
        (hidden_states.clone(), wanted.then_some(hidden_states))
    }
}

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(attentions = Lazy)]
struct Overlapping {
    layers: Vec<Slot<Lazy>>,
    #[module(skip)]
    config: ToyConfig,
    recorders: OutputRecorders,
}

impl Overlapping {
    fn make(layers: usize, depth: usize) -> Self {
        let layers = (0..layers).map(|_| Lazy::slot(depth, &Init::new(&device()))).collect();
        Self { layers, config: ToyConfig::tiny(), recorders: OutputRecorders::default() }
    }

    #[capture_outputs]
    fn forward(&self, hidden_states: Tensor<3>, kwargs: &ForwardKwargs) -> Result<ToyOutput, CaptureError> {
        let (scope, begun) = (Scope::current(), Barrier::new(self.layers.len()));
        if let [layer] = self.layers.as_slice() {
            layer.forward(hidden_states.clone(), &begun);
            return Ok(ToyOutput::new(hidden_states));
        }
        std::thread::scope(|threads| {
            for layer in &self.layers {
                threads.spawn(|| scope.enter(|| layer.forward(hidden_states.clone(), &begun)));
            }
        });
        Ok(ToyOutput::new(hidden_states))
    }
}

#[test]
fn calls_that_overlap_give_what_may_turn_out_to_be_selected() {
    for (layers, depth) in [(3, 0), (1, 2)] {
        let model = Overlapping::make(layers, depth);
        for position in 0..3 {
            let output = model
                .forward(input(), &ForwardKwargs::new().output_attentions(position))
                .unwrap_or_else(|error| panic!("{layers} layers, depth {depth}: {error}"));
            assert!(output.attentions.get(position).is_some());
        }
    }
}
