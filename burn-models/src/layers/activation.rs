use burn::tensor::{Tensor, activation};
use serde::{Deserialize, Serialize};

/// An activation function, named as in `hidden_act`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Activation {
    /// `x * sigmoid(x)`
    #[default]
    #[serde(alias = "swish")]
    Silu,
    /// Gaussian error linear unit, exact.
    Gelu,
    /// The same by the hyperbolic tangent.
    #[serde(alias = "gelu_pytorch_tanh", alias = "gelu_fast")]
    GeluNew,
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
            Self::Silu => activation::silu(x),
            Self::Gelu => activation::gelu(x),
            Self::GeluNew => activation::gelu_approximate(x),
            Self::QuickGelu => x.clone() * activation::sigmoid(x * 1.702),
            Self::Relu => activation::relu(x),
            Self::Tanh => x.tanh(),
        }
    }
}
