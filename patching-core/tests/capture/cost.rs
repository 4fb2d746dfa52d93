//! Off, recording costs no allocation; how much time it costs is measured by `examples/slot_cost.rs`.

use crate::model::ToyConfig;
use burn::module::Param;
use burn::tensor::Tensor;
use patching_core::capture::{Element, Keep, OutputValue};
use patching_core::prelude::*;

/// A value that costs nothing itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number(f64);

impl Element for Number {
    type Value = Self;
    fn value(&self, _: Keep) -> Option<Self> {
        Some(*self)
    }
}

impl OutputField for Number {
    fn output_value(&self) -> Option<OutputValue> {
        None
    }
}

#[derive(burn::module::Module, Debug)]
pub struct Half;

#[module_class]
impl Half {
    pub fn new(_init: &Init) -> Self {
        Self
    }
    pub fn forward(&self, number: Number) -> Number {
        Number(number.0 / 2.0)
    }
}

#[derive(ModelOutput, Debug)]
pub struct Numbers {
    last: Number,
    hidden_states: Captured<Number>,
}

#[derive(burn::module::Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = OutputRecorder(Half, capture_initial_hidden_state = false))]
pub struct Halving {
    /// As in most models, a parameter comes before the layers.
    scale: Param<Tensor<1>>,
    layers: Vec<Slot<Half>>,
    #[module(skip)]
    config: ToyConfig,
    recorders: OutputRecorders,
}

impl Halving {
    #[merge_with_config_defaults]
    #[capture_outputs]
    fn forward(&self, number: Number, kwargs: &ForwardKwargs) -> Result<Numbers, CaptureError> {
        assert_eq!(kwargs.get_use_cache(), Some(true));
        Ok(Numbers::new(self.layers.iter().fold(number, |number, layer| layer.forward(number))))
    }
}

#[test]
fn off_allocates_nothing() {
    let init = Init::new(&crate::model::device());
    let config = ToyConfig { use_cache: Some(true), output_hidden_states: Some(false), ..ToyConfig::tiny() };
    let model = Halving {
        scale: Param::from_tensor(Tensor::ones([1], init.device())),
        layers: (0..8).map(|_| Half::slot(&init)).collect(),
        config,
        recorders: OutputRecorders::default(),
    };
    let run = |kwargs: &ForwardKwargs| model.forward(Number(512.0), kwargs).expect("runs");
    let off = ForwardKwargs::new();
    assert_eq!(run(&off).last, Number(2.0));
    let allocated = allocation_counter::measure(|| {
        run(&off);
    });
    assert_eq!(allocated.count_total, 0);
    // the counter does count
    let on = ForwardKwargs::new().output_hidden_states(true);
    let allocated = allocation_counter::measure(|| {
        assert_eq!(run(&on).hidden_states.at(0), Ok(&Number(256.0)));
    });
    assert!(allocated.count_total > 8);
}
