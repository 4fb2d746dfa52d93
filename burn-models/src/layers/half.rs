//! What some families do so that half precision does not overflow.

use super::linear::product;
use burn::nn::Linear;
use burn::tensor::{DType, Tensor};

/// What is taken off the largest f16 to be well below it.
const MARGIN: f64 = 1000.0;

/// Bounds f16 values by the largest finite ones, or if any is infinite by a little less; values of other types stay as
/// they are.
///
/// Nothing is read back to find out.
pub fn finite(x: Tensor<3>) -> Tensor<3> {
    if x.dtype() != DType::F16 {
        return x;
    }
    let dims = x.dims();
    let largest = f64::from(burn::tensor::f16::MAX);
    let overflowed = x.clone().is_inf().any();
    let limit = Tensor::<1>::full([1], largest, (&x.device(), x.dtype()));
    let limit = limit.mask_fill(overflowed, largest - MARGIN).reshape([1, 1, 1]).expand(dims);
    // comparisons leave NaN alone
    let x = x.clone().mask_where(x.greater(limit.clone()), limit.clone());
    x.clone().mask_where(x.lower(limit.clone().neg()), limit.neg())
}

/// Bounds f16 values by what is a little less than the largest; values of other types stay as they are.
pub fn well_finite(x: Tensor<3>) -> Tensor<3> {
    if x.dtype() != DType::F16 {
        return x;
    }
    let limit = f64::from(burn::tensor::f16::MAX) - MARGIN;
    x.clamp(-limit, limit)
}

/// [`linear`](super::linear()), which of f16 values gives f32, computed in f32: sums over many values overflow f16.
pub fn wide_linear(layer: &Linear, x: Tensor<3>) -> Tensor<3> {
    if x.dtype() != DType::F16 {
        return super::linear(layer, x);
    }
    let [batch, seq, inputs] = x.dims();
    let weight = layer.weight.val().cast(DType::F32);
    let [_, outputs] = weight.dims();
    let folded = product(x.cast(DType::F32).reshape([batch * seq, inputs]), weight);
    let folded = match &layer.bias {
        Some(bias) => folded + bias.val().cast(DType::F32).unsqueeze(),
        None => folded,
    };
    folded.reshape([batch, seq, outputs])
}

/// The sum, in f32 if one of both is.
pub fn wide_sum(x: Tensor<3>, y: Tensor<3>) -> Tensor<3> {
    match (x.dtype(), y.dtype()) {
        (one, other) if one == other => x + y,
        _ => x.cast(DType::F32) + y.cast(DType::F32),
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use burn::tensor::Device;

    fn half(values: [f32; 3]) -> Tensor<3> {
        Tensor::<1>::from_floats(values, &Device::flex()).reshape([1, 1, 3]).cast(DType::F16)
    }

    fn values(x: &Tensor<3>) -> Vec<f32> {
        x.to_data().iter::<f32>().collect()
    }

    #[test]
    fn infinite_values_are_bounded() {
        assert_eq!(values(&finite(half([1.0, -65504.0, 65504.0]))), [1.0, -65504.0, 65504.0]);
        // the nearest f16 of 64504
        assert_eq!(values(&finite(half([f32::INFINITY, -65504.0, 2.0]))), [64512.0, -64512.0, 2.0]);
        let bounded = values(&finite(half([f32::NEG_INFINITY, f32::NAN, 2.0])));
        assert!(bounded[0] == -64512.0 && bounded[1].is_nan() && bounded[2] == 2.0);
        let wide = Tensor::<3>::full([1, 1, 1], f32::INFINITY, &Device::flex());
        assert_eq!(values(&finite(wide)), [f32::INFINITY]);
    }

    #[test]
    fn large_values_are_bounded_before_any_is_infinite() {
        assert_eq!(values(&well_finite(half([1.0, -65504.0, f32::INFINITY]))), [1.0, -64512.0, 64512.0]);
        let wide = Tensor::<3>::full([1, 1, 1], 65504.0, &Device::flex());
        assert_eq!(values(&well_finite(wide)), [65504.0]);
    }

    #[test]
    fn sums_are_wide_where_a_part_is() {
        let wide = half([1.0, 2.0, 3.0]).cast(DType::F32);
        assert_eq!(wide_sum(half([1.0; 3]), half([1.0; 3])).dtype(), DType::F16);
        assert_eq!(wide_sum(wide.clone(), half([1.0; 3])).dtype(), DType::F32);
        assert_eq!(values(&wide_sum(half([60000.0; 3]), wide * 60000.0)), [120_000.0, 180_000.0, 240_000.0]);
    }

    #[test]
    fn products_of_f16_do_not_overflow() {
        let weight = Tensor::<2>::full([3, 1], 60000.0, &Device::flex()).cast(DType::F16);
        // how it is rounded is the device's affair
        let stored: Vec<f32> = weight.to_data().iter::<f32>().collect();
        let layer = Linear { weight: burn::module::Param::from_tensor(weight), bias: None };
        let product = wide_linear(&layer, half([4.0; 3]));
        assert_eq!((product.dtype(), values(&product)), (DType::F32, vec![12.0 * stored[0]]));
    }
}
