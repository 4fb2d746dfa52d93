//! A key twice, in one declaration and in two.
mod parts;
use parts::*;

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = Block, hidden_states = Attention)]
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
#[can_record_outputs(attentions = Attention)]
#[can_record_outputs(attentions = "Attention")]
struct Twice {
    layers: Vec<Slot<Block>>,
    #[module(skip)]
    config: Config,
    recorders: OutputRecorders,
}

impl Twice {
    #[capture_outputs]
    fn forward(&self, mut hidden_states: Tensor<3>, kwargs: &ForwardKwargs) -> Result<Output, CaptureError> {
        for layer in &self.layers {
            hidden_states = layer.forward(hidden_states);
        }
        Ok(Output::new(hidden_states))
    }
}

fn main() {}
