use super::{Activation, linear};
use burn::nn::Linear;
use burn::tensor::Tensor;

/// The gated feed-forward block: `down(activation(gate(x)) * up(x))`, `[batch, seq, hidden]` to the same.
pub fn gated_mlp(gate: &Linear, up: &Linear, down: &Linear, activation: Activation, x: Tensor<3>) -> Tensor<3> {
    let gated = activation.forward(linear(gate, x.clone()));
    linear(down, gated * linear(up, x))
}
