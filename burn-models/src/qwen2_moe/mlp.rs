use super::Qwen2MoeConfig;
use crate::layers::{Activation, gated_mlp, new_linear};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// Qwen2-MoE's feed-forward block without experts: that of a dense layer, and the expert that all tokens share.
#[derive(Module, Debug)]
pub struct Qwen2MoeMLP {
    /// `[hidden, intermediate]`
    pub gate_proj: Linear,
    /// `[hidden, intermediate]`
    pub up_proj: Linear,
    /// `[intermediate, hidden]`
    pub down_proj: Linear,
    #[module(skip)]
    activation: Activation,
}

#[module_class]
impl Qwen2MoeMLP {
    /// Fresh parameters, with `intermediate_size` inside.
    pub fn new(config: &Qwen2MoeConfig, intermediate_size: usize, init: &Init) -> Self {
        let linear = |inputs, outputs| {
            let std = config.initializer_range;
            new_linear(inputs, outputs, false, std, init.device())
        };
        Self {
            gate_proj: linear(config.hidden_size, intermediate_size),
            up_proj: linear(config.hidden_size, intermediate_size),
            down_proj: linear(intermediate_size, config.hidden_size),
            activation: config.hidden_act,
        }
    }

    /// `[batch, seq, hidden]` to the same.
    pub fn forward(&self, hidden_states: Tensor<3>) -> Tensor<3> {
        gated_mlp(&self.gate_proj, &self.up_proj, &self.down_proj, self.activation, hidden_states)
    }
}
