use super::{gelu, gelu_tanh, quick_gelu};
use burn::tensor::{Tensor, activation};
use serde::{Deserialize, Serialize};

/// An activation function, named as in `hidden_act`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Activation {
    /// `x * sigmoid(x)`
    #[default]
    Silu,
    /// The same under its other name, which is kept when a config is saved.
    Swish,
    /// Gaussian error linear unit, exact.
    Gelu,
    /// The same by the hyperbolic tangent.
    GeluNew,
    /// The same under its other name.
    GeluFast,
    /// The same under its other name.
    GeluPytorchTanh,
    /// `x * sigmoid(1.702 x)`
    QuickGelu,
    /// `max(x, 0)`
    Relu,
    /// Hyperbolic tangent.
    Tanh,
}

impl Activation {
    /// Applies it to every element.
    pub fn forward<const D: usize>(self, x: Tensor<D>) -> Tensor<D> {
        match self {
            Self::Silu | Self::Swish => activation::silu(x),
            Self::Gelu => gelu(x),
            Self::GeluNew | Self::GeluFast | Self::GeluPytorchTanh => gelu_tanh(x),
            Self::QuickGelu => quick_gelu(x),
            Self::Relu => activation::relu(x),
            Self::Tanh => x.tanh(),
        }
    }
}
