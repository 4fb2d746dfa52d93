use burn::module::Initializer;
use burn::nn::PaddingConfig1d;
use burn::nn::conv::{Conv1d, Conv1dConfig, Conv2d, Conv2dConfig};
use burn::tensor::{Device, Tensor};

#[cfg(all(test, feature = "flex"))]
mod tests;
#[cfg(feature = "flex")]
mod unfolded;

/// A convolution over one dimension, `[inputs, outputs]` channels, with normally distributed weights of standard
/// deviation `std` and, if wanted, a bias of zeros.
pub fn new_conv1d(
    channels: [usize; 2],
    kernel: usize,
    stride: usize,
    padding: usize,
    bias: bool,
    std: f64,
    device: &Device,
) -> Conv1d {
    let mut layer = Conv1dConfig::new(channels[0], channels[1], kernel)
        .with_stride(stride)
        .with_padding(PaddingConfig1d::Explicit(padding, padding))
        .with_bias(bias)
        .with_initializer(Initializer::Normal { mean: 0.0, std })
        .init(device);
    layer.bias = bias.then(|| Initializer::Zeros.init([channels[1]], device));
    layer
}

/// A convolution whose windows are patches `[height, width]` that lie next to each other, `[inputs, outputs]`
/// channels, initialized like [`new_conv1d`].
pub fn new_patch_projection(channels: [usize; 2], patch: [usize; 2], bias: bool, std: f64, device: &Device) -> Conv2d {
    let mut layer = Conv2dConfig::new(channels, patch)
        .with_stride(patch)
        .with_bias(bias)
        .with_initializer(Initializer::Normal { mean: 0.0, std })
        .init(device);
    layer.bias = bias.then(|| Initializer::Zeros.init([channels[1]], device));
    layer
}

/// Convolves over the last dimension.
///
/// On burn-flex the windows are laid out as a matrix, which its matrix product takes on all threads.
///
/// # Shapes
///
/// - `x`: `[batch, inputs, length]`
/// - output: `[batch, outputs, (length + 2 * padding - kernel) / stride + 1]`
pub fn conv1d(layer: &Conv1d, x: Tensor<3>) -> Tensor<3> {
    #[cfg(feature = "flex")]
    if let Some(windows) = unfolded::Windows::of(layer, &x) {
        return unfolded::conv1d(layer, x, windows);
    }
    layer.forward(x)
}

/// Maps each patch of an image to a vector, patches in order of rows.
///
/// # Shapes
///
/// - `pixels`: `[batch, channels, height, width]`
/// - output: `[batch, patches, hidden]`
pub fn patch_projection(layer: &Conv2d, pixels: Tensor<4>) -> Tensor<3> {
    #[cfg(feature = "flex")]
    if unfolded::are_plain_patches(layer, &pixels) {
        return unfolded::patch_projection(layer, pixels);
    }
    layer.forward(pixels).flatten::<3>(2, 3).swap_dims(1, 2)
}
