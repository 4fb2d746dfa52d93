use super::ViTConfig;
use crate::layers::{Activation, new_linear, plain_mlp};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// ViT's feed-forward block.
#[derive(Module, Debug)]
pub struct ViTMLP {
    /// `[hidden, intermediate]`
    pub fc1: Linear,
    /// `[intermediate, hidden]`
    pub fc2: Linear,
    #[module(skip)]
    activation: Activation,
}

#[module_class]
impl ViTMLP {
    /// Fresh parameters.
    pub fn new(config: &ViTConfig, init: &Init) -> Self {
        let linear = |inputs, outputs| new_linear(inputs, outputs, true, config.initializer_range, init.device());
        Self {
            fc1: linear(config.hidden_size, config.intermediate_size),
            fc2: linear(config.intermediate_size, config.hidden_size),
            activation: config.hidden_act,
        }
    }

    /// `[batch, seq, hidden]` to the same.
    pub fn forward(&self, hidden_states: Tensor<3>) -> Tensor<3> {
        plain_mlp(&self.fc1, &self.fc2, self.activation, hidden_states)
    }
}
