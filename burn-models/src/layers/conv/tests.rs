use super::*;
use burn::tensor::{DType, Distribution};

fn random<const D: usize>(shape: [usize; D]) -> Tensor<D> {
    Tensor::random(shape, Distribution::Normal(0.0, 1.0), &Device::flex())
}

fn is_close(found: Tensor<3>, expected: Tensor<3>) {
    assert_eq!((found.dims(), found.dtype()), (expected.dims(), expected.dtype()));
    let (found, expected) = (found.into_data(), expected.into_data());
    for (found, expected) in found.iter::<f32>().zip(expected.iter::<f32>()) {
        assert!((found - expected).abs() <= 1e-6 * expected.abs().max(1.0), "{found}, expected {expected}");
    }
}

fn layer(channels: [usize; 2], [kernel, stride, padding]: [usize; 3], bias: bool) -> Conv1d {
    let mut layer = new_conv1d(channels, kernel, stride, padding, bias, 0.1, &Device::flex());
    layer.bias = bias.then(|| burn::module::Param::from_tensor(random([channels[1]])));
    layer
}

#[test]
fn windows_are_burns() {
    let shapes = [[3, 1, 1], [3, 2, 1], [1, 1, 0], [5, 3, 4], [4, 5, 0], [7, 2, 9]];
    for numbers in shapes {
        for (batch, length) in [(1, 7), (2, 12), (3, 101)] {
            let layer = layer([5, 6], numbers, batch != 2);
            let x = random([batch, 5, length]);
            is_close(conv1d(&layer, x.clone()), layer.forward(x));
            let view = random([batch, length, 5]).swap_dims(1, 2);
            is_close(conv1d(&layer, view.clone()), layer.forward(view));
        }
    }
    let mut dilated = layer([5, 6], [3, 2, 2], true);
    dilated.dilation = 3;
    let x = random([2, 5, 31]);
    is_close(conv1d(&dilated, x.clone()), dilated.forward(x));
}

#[test]
fn other_cases_are_left_to_burn() {
    let mut grouped = Conv1dConfig::new(4, 6, 3).with_groups(2).init(&Device::flex());
    is_close(conv1d(&grouped, random([2, 4, 9])).slice_dim(0, 0..0), random([0, 6, 7]));
    grouped.padding = PaddingConfig1d::Same;
    let x = random([2, 4, 9]);
    is_close(conv1d(&grouped, x.clone()), grouped.forward(x));
    for dtype in [DType::F16, DType::BF16] {
        let mut narrow = layer([3, 4], [3, 1, 1], true);
        narrow.weight = narrow.weight.map(|weight| weight.cast(dtype));
        narrow.bias = narrow.bias.map(|bias| bias.map(|bias| bias.cast(dtype)));
        let x = random([1, 3, 8]).cast(dtype);
        is_close(conv1d(&narrow, x.clone()), narrow.forward(x));
    }
}

#[test]
fn patches_are_burns() {
    let shapes = [([3, 8], [4, 4], [2, 3, 8, 12]), ([1, 5], [3, 2], [1, 1, 10, 7]), ([2, 4], [1, 1], [3, 2, 3, 2])];
    for (channels, patch, shape) in shapes {
        for bias in [false, true] {
            let mut layer = new_patch_projection(channels, patch, bias, 0.1, &Device::flex());
            layer.bias = bias.then(|| burn::module::Param::from_tensor(random([channels[1]])));
            let plain = |pixels| layer.forward(pixels).flatten::<3>(2, 3).swap_dims(1, 2);
            let pixels: Tensor<4> = random(shape);
            is_close(patch_projection(&layer, pixels.clone()), plain(pixels));
            let view = random([shape[0], shape[2], shape[3], shape[1]]).permute([0, 3, 1, 2]);
            is_close(patch_projection(&layer, view.clone()), plain(view));
        }
    }
}

#[test]
fn overlapping_and_padded_patches_are_burns() {
    let mut layer = new_patch_projection([2, 3], [4, 4], true, 0.1, &Device::flex());
    layer.stride = [2, 3];
    let plain = |layer: &Conv2d, pixels| layer.forward(pixels).flatten::<3>(2, 3).swap_dims(1, 2);
    let pixels: Tensor<4> = random([1, 2, 9, 11]);
    is_close(patch_projection(&layer, pixels.clone()), plain(&layer, pixels.clone()));
    layer.stride = [4, 4];
    layer.padding = burn::nn::PaddingConfig2d::Explicit(1, 1, 1, 1);
    is_close(patch_projection(&layer, pixels.clone()), plain(&layer, pixels));
}
