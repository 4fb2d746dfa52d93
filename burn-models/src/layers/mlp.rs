use super::{Activation, linear, silu_gated};
use burn::nn::Linear;
use burn::tensor::Tensor;

/// The gated feed-forward block: `down(activation(gate(x)) * up(x))`, `[batch, seq, hidden]` to the same.
pub fn gated_mlp(gate: &Linear, up: &Linear, down: &Linear, activation: Activation, x: Tensor<3>) -> Tensor<3> {
    let (gated, up) = (linear(gate, x.clone()), linear(up, x));
    let product = match activation {
        Activation::Silu | Activation::Swish => silu_gated(gated, up),
        activation => activation.forward(gated) * up,
    };
    linear(down, product)
}

/// The feed-forward block without a gate: `outer(activation(inner(x)))`, `[batch, seq, hidden]` to the same.
pub fn plain_mlp(inner: &Linear, outer: &Linear, activation: Activation, x: Tensor<3>) -> Tensor<3> {
    linear(outer, activation.forward(linear(inner, x)))
}
