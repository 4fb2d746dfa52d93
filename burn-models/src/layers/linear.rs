use burn::module::Initializer;
use burn::nn::Linear;
use burn::tensor::{Device, Tensor};

/// A linear map with normally distributed weights of standard deviation `std` and, if wanted, a bias of zeros.
pub fn new_linear(inputs: usize, outputs: usize, bias: bool, std: f64, device: &Device) -> Linear {
    let weight = Initializer::Normal { mean: 0.0, std }.init([inputs, outputs], device);
    let bias = bias.then(|| Initializer::Zeros.init([outputs], device));
    Linear { weight, bias }
}

/// Applies a linear map to the last dimension: `[..., inputs]` to `[..., outputs]`.
///
/// All leading dimensions are folded into rows first. A weight as it lies in a checkpoint is a transposed view here,
/// and a matrix product of two matrices reads such a view in place, while a batched one copies it at every call.
pub fn linear<const D: usize>(layer: &Linear, x: Tensor<D>) -> Tensor<D> {
    let mut shape = x.dims();
    let weight = layer.weight.val();
    let [inputs, outputs] = weight.dims();
    let rows = shape[..D - 1].iter().product::<usize>();
    let mut folded = x.reshape([rows, inputs]).matmul(weight);
    if let Some(bias) = &layer.bias {
        folded = folded + bias.val().unsqueeze();
    }
    shape[D - 1] = outputs;
    folded.reshape(shape)
}
