use super::ViTConfig;
use crate::layers::{Activation, first_of, linear, new_linear};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// What makes something that stands for a whole image of the token that stands for it.
#[derive(Module, Debug)]
pub struct ViTPooler {
    /// `[hidden, output]`
    pub dense: Linear,
    #[module(skip)]
    activation: Activation,
}

#[module_class]
impl ViTPooler {
    /// Fresh parameters.
    pub fn new(config: &ViTConfig, init: &Init) -> Self {
        let (inputs, outputs) = (config.hidden_size, config.pooler_output_size());
        Self {
            dense: new_linear(inputs, outputs, true, config.initializer_range, init.device()),
            activation: config.pooler_act,
        }
    }

    /// `[batch, seq, hidden]` to `[batch, output]`.
    pub fn forward(&self, hidden_states: Tensor<3>) -> Tensor<2> {
        self.activation.forward(linear(&self.dense, first_of(hidden_states)))
    }
}
