//! Values that are no targets.
mod parts;
use parts::*;

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = 3, attentions = ["layers.self_attn", [Attention], Attention.new()])]
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
#[can_record_outputs(hidden_states = [])]
struct Empty {
    layers: Vec<Slot<Block>>,
    #[module(skip)]
    config: Config,
    recorders: OutputRecorders,
}

impl Empty {
    #[capture_outputs]
    fn forward(&self, mut hidden_states: Tensor<3>, kwargs: &ForwardKwargs) -> Result<Output, CaptureError> {
        for layer in &self.layers {
            hidden_states = layer.forward(hidden_states);
        }
        Ok(Output::new(hidden_states))
    }
}

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs("hidden_states" = Block)]
struct NotAKey {
    layers: Vec<Slot<Block>>,
    #[module(skip)]
    config: Config,
    recorders: OutputRecorders,
}

impl NotAKey {
    #[capture_outputs]
    fn forward(&self, mut hidden_states: Tensor<3>, kwargs: &ForwardKwargs) -> Result<Output, CaptureError> {
        for layer in &self.layers {
            hidden_states = layer.forward(hidden_states);
        }
        Ok(Output::new(hidden_states))
    }
}

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states)]
struct NoValue {
    layers: Vec<Slot<Block>>,
    #[module(skip)]
    config: Config,
    recorders: OutputRecorders,
}

impl NoValue {
    #[capture_outputs]
    fn forward(&self, mut hidden_states: Tensor<3>, kwargs: &ForwardKwargs) -> Result<Output, CaptureError> {
        for layer in &self.layers {
            hidden_states = layer.forward(hidden_states);
        }
        Ok(Output::new(hidden_states))
    }
}

fn main() {}
