//! The types in the `Result`.
mod parts;
use parts::*;

struct NoOutput;
struct OtherError;

#[derive(Module, Debug, CanRecordOutputs)]
struct OutputType {
    layers: Vec<Slot<Block>>,
    #[module(skip)]
    config: Config,
    recorders: OutputRecorders,
}

impl OutputType {
    #[capture_outputs]
    fn forward(&self, _hidden_states: Tensor<3>, kwargs: &ForwardKwargs) -> Result<NoOutput, CaptureError> {
        Ok(NoOutput)
    }
}

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = Block, attentions = Attention)]
struct ErrorType {
    layers: Vec<Slot<Block>>,
    #[module(skip)]
    config: Config,
    recorders: OutputRecorders,
}

impl ErrorType {
    #[capture_outputs]
    fn forward(&self, hidden_states: Tensor<3>, kwargs: &ForwardKwargs) -> Result<Output, OtherError> {
        Ok(Output::new(hidden_states))
    }
}

#[derive(Module, Debug, CanRecordOutputs)]
struct Hidden {
    layers: Vec<Slot<Block>>,
    #[module(skip)]
    config: Config,
    recorders: OutputRecorders,
}

impl Hidden {
    #[capture_outputs]
    fn forward(&self, hidden_states: Tensor<3>, kwargs: &ForwardKwargs) -> Result<impl ModelOutput, CaptureError> {
        Ok(Output::new(hidden_states))
    }
}

fn main() {}
