use super::Dinov2Config;
use crate::layers::{Activation, gated_mlp, new_linear, plain_mlp};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// DINOv2's feed-forward block, of one of two kinds.
#[derive(Module, Debug)]
pub enum Dinov2FeedForward {
    /// Two linear maps with an activation in between.
    Plain(Slot<Dinov2MLP>),
    /// The same with a gate.
    Gated(Slot<Dinov2SwiGLUFFN>),
}

impl Dinov2FeedForward {
    /// Fresh parameters, of the kind that the config says.
    pub fn new(config: &Dinov2Config, init: &Init) -> Self {
        match config.use_swiglu_ffn {
            true => Self::Gated(Dinov2SwiGLUFFN::slot(config, init)),
            false => Self::Plain(Dinov2MLP::slot(config, init)),
        }
    }

    /// `[batch, seq, hidden]` to the same.
    pub fn forward(&self, hidden_states: Tensor<3>) -> Tensor<3> {
        match self {
            Self::Plain(mlp) => mlp.forward(hidden_states),
            Self::Gated(mlp) => mlp.forward(hidden_states),
        }
    }
}

/// DINOv2's feed-forward block without a gate.
#[derive(Module, Debug)]
pub struct Dinov2MLP {
    /// `[hidden, intermediate]`
    pub fc1: Linear,
    /// `[intermediate, hidden]`
    pub fc2: Linear,
    #[module(skip)]
    activation: Activation,
}

#[module_class]
impl Dinov2MLP {
    /// Fresh parameters.
    pub fn new(config: &Dinov2Config, init: &Init) -> Self {
        let (hidden, inside) = (config.hidden_size, config.intermediate_size());
        let linear = |inputs, outputs| new_linear(inputs, outputs, true, config.initializer_range, init.device());
        Self { fc1: linear(hidden, inside), fc2: linear(inside, hidden), activation: config.hidden_act }
    }

    /// `[batch, seq, hidden]` to the same.
    pub fn forward(&self, hidden_states: Tensor<3>) -> Tensor<3> {
        plain_mlp(&self.fc1, &self.fc2, self.activation, hidden_states)
    }
}

/// DINOv2's feed-forward block with a gate.
#[derive(Module, Debug)]
pub struct Dinov2SwiGLUFFN {
    /// `[hidden, intermediate]`
    pub gate_proj: Linear,
    /// `[hidden, intermediate]`
    pub up_proj: Linear,
    /// `[intermediate, hidden]`
    pub down_proj: Linear,
}

#[module_class]
impl Dinov2SwiGLUFFN {
    /// Fresh parameters.
    pub fn new(config: &Dinov2Config, init: &Init) -> Self {
        let (hidden, inside) = (config.hidden_size, config.intermediate_size());
        let linear = |inputs, outputs| new_linear(inputs, outputs, true, config.initializer_range, init.device());
        Self { gate_proj: linear(hidden, inside), up_proj: linear(hidden, inside), down_proj: linear(inside, hidden) }
    }

    /// `[batch, seq, hidden]` to the same.
    pub fn forward(&self, hidden_states: Tensor<3>) -> Tensor<3> {
        gated_mlp(&self.gate_proj, &self.up_proj, &self.down_proj, Activation::Silu, hidden_states)
    }
}
