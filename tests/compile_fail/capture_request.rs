//! Which argument is the request.
mod parts;
use parts::*;

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = Block, attentions = Attention)]
struct Without {
    layers: Vec<Slot<Block>>,
    #[module(skip)]
    config: Config,
    recorders: OutputRecorders,
}

impl Without {
    #[capture_outputs]
    fn forward(&self, hidden_states: Tensor<3>) -> Result<Output, CaptureError> {
        Ok(Output::new(hidden_states))
    }
}

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = Block, attentions = Attention)]
struct Two {
    layers: Vec<Slot<Block>>,
    #[module(skip)]
    config: Config,
    recorders: OutputRecorders,
}

impl Two {
    #[capture_outputs]
    fn forward(&self, hidden_states: Tensor<3>, text: &ForwardKwargs, vision: &ForwardKwargs) -> Result<Output, CaptureError> {
        Ok(Output::new(hidden_states))
    }
}

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = Block, attentions = Attention)]
struct Unknown {
    layers: Vec<Slot<Block>>,
    #[module(skip)]
    config: Config,
    recorders: OutputRecorders,
}

impl Unknown {
    #[capture_outputs(kwargs = visual)]
    fn forward(&self, hidden_states: Tensor<3>, text: &ForwardKwargs, vision: &ForwardKwargs) -> Result<Output, CaptureError> {
        Ok(Output::new(hidden_states))
    }
}

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = Block, attentions = Attention)]
struct Unnamed {
    layers: Vec<Slot<Block>>,
    #[module(skip)]
    config: Config,
    recorders: OutputRecorders,
}

impl Unnamed {
    #[capture_outputs]
    fn forward(&self, hidden_states: Tensor<3>, _: &ForwardKwargs) -> Result<Output, CaptureError> {
        Ok(Output::new(hidden_states))
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
    fn forward(&self, hidden_states: Tensor<3>, kwargs: &mut ForwardKwargs) -> Result<Output, CaptureError> {
        Ok(Output::new(hidden_states))
    }
}

fn main() {}
