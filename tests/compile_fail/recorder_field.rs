//! The field that marks a base model.
mod parts;
use parts::*;

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = Block)]
struct Without {
    layers: Vec<Slot<Block>>,
    #[module(skip)]
    config: Config,
}

impl Without {
    #[capture_outputs]
    fn forward(&self, hidden_states: Tensor<3>, kwargs: &ForwardKwargs) -> Result<Output, CaptureError> {
        Ok(Output::new(hidden_states))
    }
}

#[derive(Module, Debug, CanRecordOutputs)]
struct Two {
    one: OutputRecorders,
    other: OutputRecorders,
}

#[derive(Module, Debug, CanRecordOutputs)]
enum NoStruct {
    Some(Linear),
}

fn main() {}
