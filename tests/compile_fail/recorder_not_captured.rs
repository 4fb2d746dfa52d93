//! A key that names a field that cannot hold recorded values.
mod parts;
use parts::*;

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(last_hidden_state = "Block")]
struct Model {
    layers: Vec<Slot<Block>>,
    #[module(skip)]
    config: Config,
    recorders: OutputRecorders,
}

impl Model {
    #[capture_outputs]
    fn forward(&self, mut hidden_states: Tensor<3>, kwargs: &ForwardKwargs) -> Result<Output, CaptureError> {
        for layer in &self.layers {
            hidden_states = layer.forward(hidden_states);
        }
        Ok(Output::new(hidden_states))
    }
}

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(last_hidden_state = OutputRecorder(Block, index = 0))]
struct Typed {
    layers: Vec<Slot<Block>>,
    #[module(skip)]
    config: Config,
    recorders: OutputRecorders,
}

impl Typed {
    #[capture_outputs]
    fn forward(&self, mut hidden_states: Tensor<3>, kwargs: &ForwardKwargs) -> Result<Output, CaptureError> {
        for layer in &self.layers {
            hidden_states = layer.forward(hidden_states);
        }
        Ok(Output::new(hidden_states))
    }
}

fn main() {}
