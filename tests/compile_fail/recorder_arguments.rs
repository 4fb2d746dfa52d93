//! Arguments of `OutputRecorder`.
mod parts;
use parts::*;

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(
    hidden_states = OutputRecorder(Block, layer = "layers", index = 0, index = 0),
    attentions = [
        OutputRecorder(Attention, index = "1"),
        OutputRecorder(Attention, indx = 1),
        OutputRecorder(Attention, layer_name = 3),
        OutputRecorder(Attention, layer_name = "."),
        OutputRecorder(Attention, capture_initial_hidden_state = 1),
        OutputRecorder(Attention, capture_initial_hidden_state = true),
        OutputRecorder(Attention, 1),
        OutputRecorder(index = 1),
        OutputRecorder(),
    ],
)]
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
