use burn::tensor::{Tensor, activation};

/// `x / 2 * (1 + erf(x / sqrt(2)))`, element by element.
pub fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    activation::gelu(x)
}

/// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))`, element by element.
pub fn gelu_tanh<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    activation::gelu_approximate(x)
}

/// `x * sigmoid(1.702 x)`, element by element.
pub fn quick_gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    x.clone() * activation::sigmoid(x * 1.702)
}
