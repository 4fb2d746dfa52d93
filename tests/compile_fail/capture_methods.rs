//! Methods that cannot record.
mod parts;
use parts::*;

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = Block, attentions = Attention)]
struct Async {
    layers: Vec<Slot<Block>>,
    #[module(skip)]
    config: Config,
    recorders: OutputRecorders,
}

impl Async {
    #[capture_outputs]
    async fn forward(&self, hidden_states: Tensor<3>, kwargs: &ForwardKwargs) -> Result<Output, CaptureError> {
        Ok(Output::new(hidden_states))
    }
}

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = Block, attentions = Attention)]
struct Const {
    layers: Vec<Slot<Block>>,
    #[module(skip)]
    config: Config,
    recorders: OutputRecorders,
}

impl Const {
    #[capture_outputs]
    const fn forward(&self, hidden_states: Tensor<3>, kwargs: &ForwardKwargs) -> Result<Output, CaptureError> {
        panic!()
    }
}

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = Block, attentions = Attention)]
struct Mutable {
    layers: Vec<Slot<Block>>,
    #[module(skip)]
    config: Config,
    recorders: OutputRecorders,
}

impl Mutable {
    #[capture_outputs]
    fn forward(&mut self, hidden_states: Tensor<3>, kwargs: &ForwardKwargs) -> Result<Output, CaptureError> {
        Ok(Output::new(hidden_states))
    }
}

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = Block, attentions = Attention)]
struct Associated {
    layers: Vec<Slot<Block>>,
    #[module(skip)]
    config: Config,
    recorders: OutputRecorders,
}

impl Associated {
    #[capture_outputs]
    fn forward(hidden_states: Tensor<3>, kwargs: &ForwardKwargs) -> Result<Output, CaptureError> {
        Ok(Output::new(hidden_states))
    }
}

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = Block, attentions = Attention)]
struct Conditional {
    layers: Vec<Slot<Block>>,
    #[module(skip)]
    config: Config,
    recorders: OutputRecorders,
}

impl Conditional {
    #[capture_outputs]
    fn forward(&self, hidden_states: Tensor<3>, kwargs: &ForwardKwargs, #[cfg(all())] _more: usize) -> Result<Output, CaptureError> {
        Ok(Output::new(hidden_states))
    }
}

#[capture_outputs]
struct NoMethod;

fn main() {}
