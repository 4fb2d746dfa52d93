//! A declaration that no method honours.
mod parts;
use parts::*;

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = Block, attentions = Attention)]
struct Model {
    layers: Vec<Slot<Block>>,
    recorders: OutputRecorders,
}

impl Model {
    fn forward(&self, hidden_states: Tensor<3>) -> Output {
        Output::new(hidden_states)
    }
}

fn main() {}
