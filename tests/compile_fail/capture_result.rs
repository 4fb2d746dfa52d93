//! A request that cannot be met is an error, so `forward` returns a `Result`.
mod parts;
use parts::*;

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = Block, attentions = Attention)]
struct Plain {
    layers: Vec<Slot<Block>>,
    #[module(skip)]
    config: Config,
    recorders: OutputRecorders,
}

impl Plain {
    #[capture_outputs]
    fn forward(&self, hidden_states: Tensor<3>, kwargs: &ForwardKwargs) -> Output {
        Output::new(hidden_states)
    }
}

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = Block, attentions = Attention)]
struct Optional {
    layers: Vec<Slot<Block>>,
    #[module(skip)]
    config: Config,
    recorders: OutputRecorders,
}

impl Optional {
    #[capture_outputs]
    fn forward(&self, hidden_states: Tensor<3>, kwargs: &ForwardKwargs) -> Option<Output> {
        Some(Output::new(hidden_states))
    }
}

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = Block, attentions = Attention)]
struct Nothing {
    layers: Vec<Slot<Block>>,
    #[module(skip)]
    config: Config,
    recorders: OutputRecorders,
}

impl Nothing {
    #[capture_outputs]
    fn forward(&self, hidden_states: Tensor<3>, kwargs: &ForwardKwargs) {}
}

fn main() {}
