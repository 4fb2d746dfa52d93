use super::CLIPEncoderConfig;
use crate::layers::{Activation, new_linear, plain_mlp};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// CLIP's feed-forward block.
#[derive(Module, Debug)]
pub struct CLIPMLP {
    /// `[hidden, intermediate]`
    pub fc1: Linear,
    /// `[intermediate, hidden]`
    pub fc2: Linear,
    #[module(skip)]
    activation: Activation,
}

#[module_class]
impl CLIPMLP {
    /// Fresh parameters.
    pub fn new(config: &CLIPEncoderConfig, init: &Init) -> Self {
        let (size, inner, std) = (config.hidden_size, config.intermediate_size, config.deviations());
        Self {
            fc1: new_linear(size, inner, true, std.widening, init.device()),
            fc2: new_linear(inner, size, true, std.into, init.device()),
            activation: config.hidden_act,
        }
    }

    /// `[batch, seq, hidden]` to the same.
    pub fn forward(&self, hidden_states: Tensor<3>) -> Tensor<3> {
        plain_mlp(&self.fc1, &self.fc2, self.activation, hidden_states)
    }
}
