//! A class that is none.
mod parts;
use parts::*;

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = Linear, attentions = [Attention, Attenton])]
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

fn main() {}
