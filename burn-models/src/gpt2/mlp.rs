use super::GPT2Config;
use crate::layers::{Activation, new_linear, plain_mlp};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// GPT-2's feed-forward block.
#[derive(Module, Debug)]
pub struct GPT2MLP {
    /// `[hidden, intermediate]`
    pub c_fc: Linear,
    /// `[intermediate, hidden]`
    pub c_proj: Linear,
    #[module(skip)]
    act: Activation,
}

#[module_class]
impl GPT2MLP {
    /// Fresh parameters.
    pub fn new(intermediate_size: usize, config: &GPT2Config, init: &Init) -> Self {
        let (size, std, device) = (config.n_embd, config.initializer_range, init.device());
        Self {
            c_fc: new_linear(size, intermediate_size, true, std, device),
            c_proj: new_linear(intermediate_size, size, true, config.residual_std(), device),
            act: config.activation_function,
        }
    }

    /// `[batch, seq, hidden]` to the same.
    pub fn forward(&self, hidden_states: Tensor<3>) -> Tensor<3> {
        plain_mlp(&self.c_fc, &self.c_proj, self.act, hidden_states)
    }
}
