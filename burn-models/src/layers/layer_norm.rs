use burn::nn::{LayerNorm, LayerNormConfig};
use burn::tensor::{Device, Tensor};

/// A layer norm over the last dimension with a weight of ones and a bias of zeros.
pub fn new_layer_norm(size: usize, epsilon: f64, device: &Device) -> LayerNorm {
    LayerNormConfig::new(size).with_epsilon(epsilon).init(device)
}

/// Subtracts the mean over the last dimension, divides by the standard deviation, multiplies by the weight and adds
/// the bias.
///
/// # Shapes
///
/// - `x`: `[..., size]`
/// - output: `[..., size]`
pub fn layer_norm<const D: usize>(layer: &LayerNorm, x: Tensor<D>) -> Tensor<D> {
    layer.forward(x)
}
