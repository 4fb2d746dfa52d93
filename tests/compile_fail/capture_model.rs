//! What the model itself lacks: one error each, however many methods are generated.
mod parts;
use parts::*;

#[derive(Module, Debug)]
struct NotDeclared {
    #[module(skip)]
    config: Config,
}

impl NotDeclared {
    #[capture_outputs]
    fn forward(&self, hidden_states: Tensor<3>, kwargs: &ForwardKwargs) -> Result<Output, CaptureError> {
        Ok(Output::new(hidden_states))
    }
}

#[derive(Module, Debug, CanRecordOutputs)]
struct NoConfig {
    recorders: OutputRecorders,
}

impl NoConfig {
    #[capture_outputs]
    fn forward(&self, hidden_states: Tensor<3>, kwargs: &ForwardKwargs) -> Result<Output, CaptureError> {
        Ok(Output::new(hidden_states))
    }
}

#[derive(Clone, Debug)]
struct Plain;

#[derive(Module, Debug, CanRecordOutputs)]
struct PlainConfig {
    #[module(skip)]
    config: Plain,
    recorders: OutputRecorders,
}

impl PlainConfig {
    #[capture_outputs]
    fn forward(&self, hidden_states: Tensor<3>, kwargs: &ForwardKwargs) -> Result<Output, CaptureError> {
        Ok(Output::new(hidden_states))
    }
}

#[derive(Module, Debug, CanRecordOutputs)]
struct WrongFlag {
    #[module(skip)]
    config: Config,
    recorders: OutputRecorders,
}

impl WrongFlag {
    #[capture_outputs]
    fn forward(&self, hidden_states: Tensor<3>, output_attentions: Option<f32>, kwargs: &ForwardKwargs) -> Result<Output, CaptureError> {
        Ok(Output::new(hidden_states))
    }
}

fn main() {}
