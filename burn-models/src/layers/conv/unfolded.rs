//! Convolutions as matrix products on burn-flex.

use crate::layers::embedding::is_flex;
use crate::layers::linear::{product, with_bias};
use burn::nn::conv::{Conv1d, Conv2d};
use burn::nn::{PaddingConfig1d, PaddingConfig2d};
use burn::tensor::{DType, Tensor, TensorData};
use rayon::prelude::*;

/// Where windows lie in one dimension.
#[derive(Clone, Copy)]
pub(super) struct Windows {
    stride: usize,
    dilation: usize,
    before: usize,
    count: usize,
}

impl Windows {
    /// The windows of a layer over `x`, unless this is a case for Burn.
    pub(super) fn of(layer: &Conv1d, x: &Tensor<3>) -> Option<Self> {
        let [batch, inputs, length] = x.dims();
        let (before, after) = match layer.padding {
            PaddingConfig1d::Valid => (0, 0),
            PaddingConfig1d::Explicit(before, after) => (before, after),
            PaddingConfig1d::Same => return None,
        };
        let [_, weight_inputs, size] = layer.weight.dims();
        let (stride, dilation) = (layer.stride, layer.dilation);
        let reach = dilation * size.checked_sub(1)? + 1;
        let count = (before + length + after).checked_sub(reach)?.checked_div(stride)? + 1;
        let fits = is_f32_on_flex(x) && layer.groups == 1 && inputs == weight_inputs && batch * inputs > 0;
        fits.then_some(Self { stride, dilation, before, count })
    }

    /// What step `offset` of every window sees of `row`.
    fn gather(self, offset: usize, row: &[f32], seen: &mut [f32]) {
        let Self { stride, before, .. } = self;
        let offset = offset * self.dilation;
        // the first window whose step lies behind the padding, and the first one that reaches past the row
        let first = before.saturating_sub(offset).div_ceil(stride).min(seen.len());
        let end = (before + row.len()).saturating_sub(offset).div_ceil(stride).clamp(first, seen.len());
        seen[..first].fill(0.0);
        seen[end..].fill(0.0);
        if first == end {
            return;
        }
        let (row, seen) = (&row[first * stride + offset - before..], &mut seen[first..end]);
        if stride == 1 {
            seen.copy_from_slice(&row[..seen.len()]);
        } else {
            seen.iter_mut().zip(row.iter().step_by(stride)).for_each(|(seen, value)| *seen = *value);
        }
    }
}

fn is_f32_on_flex<const D: usize>(x: &Tensor<D>) -> bool {
    let device = x.device();
    x.dtype() == DType::F32 && is_flex(&device) && !device.is_autodiff()
}

/// The weight `[outputs, inputs * kernel]` times a column for each window, `[inputs * kernel, windows]`.
pub(super) fn conv1d(layer: &Conv1d, x: Tensor<3>, windows: Windows) -> Tensor<3> {
    let ([batch, inputs, length], device) = (x.dims(), x.device());
    let [outputs, _, size] = layer.weight.dims();
    let weight = layer.weight.val().reshape([outputs, inputs * size]);
    let bias = layer.bias.as_ref().map(|bias| bias.val().unsqueeze_dim::<2>(1));
    let x = x.into_data();
    let Ok(values) = x.as_slice::<f32>() else { unreachable!("it was found to be f32") };
    let each = |values: &[f32]| {
        let mut columns = vec![0.0; inputs * size * windows.count];
        columns.par_chunks_mut(windows.count).enumerate().for_each(|(row, seen)| {
            let input = row / size;
            windows.gather(row % size, &values[input * length..(input + 1) * length], seen);
        });
        let columns = TensorData::new(columns, [inputs * size, windows.count]);
        let found = product(weight.clone(), Tensor::from_data(columns, (&device, DType::F32)));
        match &bias {
            Some(bias) => found + bias.clone(),
            None => found,
        }
    };
    if batch == 1 || length == 0 {
        return each(values).unsqueeze::<3>().expand([batch, outputs, windows.count]);
    }
    Tensor::stack(values.chunks_exact(inputs * length).map(each).collect(), 0)
}

/// Whether patches lie next to each other from the first pixel on.
pub(super) fn are_plain_patches(layer: &Conv2d, pixels: &Tensor<4>) -> bool {
    let [_, channels, height, width] = pixels.dims();
    let [_, weight_channels, patch_height, patch_width] = layer.weight.dims();
    let is_padded = !matches!(layer.padding, PaddingConfig2d::Valid | PaddingConfig2d::Explicit(0, 0, 0, 0));
    is_f32_on_flex(pixels)
        && layer.stride == [patch_height, patch_width]
        && layer.dilation == [1, 1]
        && layer.groups == 1
        && !is_padded
        && channels == weight_channels
        && (1..=height).contains(&patch_height)
        && (1..=width).contains(&patch_width)
}

/// A row for each patch, `[patches, channels * patch]`, times the weight.
pub(super) fn patch_projection(layer: &Conv2d, pixels: Tensor<4>) -> Tensor<3> {
    let ([batch, channels, height, width], device) = (pixels.dims(), pixels.device());
    let [outputs, _, patch_height, patch_width] = layer.weight.dims();
    let [down, across] = [height / patch_height, width / patch_width];
    let size = channels * patch_height * patch_width;
    let pixels = pixels.into_data();
    let Ok(values) = pixels.as_slice::<f32>() else { unreachable!("they were found to be f32") };
    let mut rows = vec![0.0; batch * down * across * size];
    // one task for the patches next to each other
    rows.par_chunks_mut((across * size).max(1)).enumerate().for_each(|(strip, rows)| {
        let (image, top) = (strip / down, strip % down * patch_height);
        for (line, channel, y) in lines(channels, patch_height) {
            let start = ((image * channels + channel) * height + top + y) * width;
            let pixels = values[start..start + width].chunks_exact(patch_width);
            for (patch, pixels) in rows.chunks_exact_mut(size).zip(pixels) {
                patch[line * patch_width..(line + 1) * patch_width].copy_from_slice(pixels);
            }
        }
    });
    let rows = TensorData::new(rows, [batch * down * across, size]);
    let weight = layer.weight.val().reshape([outputs, size]).transpose();
    let found = product(Tensor::from_data(rows, (&device, DType::F32)), weight);
    let found = with_bias(found, layer.bias.as_ref().map(|bias| bias.val()));
    found.reshape([batch, down * across, outputs])
}

/// The lines of a patch in the order of its values: number, channel, line in the channel.
fn lines(channels: usize, height: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..channels * height).map(move |line| (line, line / height, line % height))
}
