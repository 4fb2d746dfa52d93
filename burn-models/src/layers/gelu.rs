//! Gaussian error linear units.
//!
//! Burn's flex backend computes them one element at a time on one thread, or in six passes; here they are one loop of
//! vector instructions on all threads. Elsewhere, on a graph and for other types than f32, Burn's are used.

use burn::tensor::{Tensor, activation};

/// `x / 2 * (1 + erf(x / sqrt(2)))`, element by element.
pub fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    #[cfg(feature = "flex")]
    if is_ours(&x) {
        return super::vector::map(x, one::Gelu);
    }
    activation::gelu(x)
}

/// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))`, element by element.
pub fn gelu_tanh<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    #[cfg(feature = "flex")]
    if is_ours(&x) {
        return super::vector::map(x, one::GeluTanh);
    }
    activation::gelu_approximate(x)
}

/// `x * sigmoid(1.702 x)`, element by element.
pub fn quick_gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    #[cfg(feature = "flex")]
    if is_ours(&x) {
        return super::vector::map(x, one::QuickGelu);
    }
    x.clone() * activation::sigmoid(x * 1.702)
}

#[cfg(feature = "flex")]
fn is_ours<const D: usize>(x: &Tensor<D>) -> bool {
    let device = x.device();
    x.dtype() == burn::tensor::DType::F32 && super::embedding::is_flex(&device) && !device.is_autodiff()
}

/// The functions of one element.
#[cfg(feature = "flex")]
mod one {
    use crate::layers::vector::{Function, erf, exp};
    use std::f32::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

    #[derive(Clone, Copy)]
    pub(super) struct Gelu;

    impl Function for Gelu {
        #[inline(always)]
        fn at(self, x: f32) -> f32 {
            0.5 * x * (1.0 + erf(x * FRAC_1_SQRT_2))
        }
    }

    #[derive(Clone, Copy)]
    pub(super) struct GeluTanh;

    impl Function for GeluTanh {
        /// `(1 + tanh(u)) / 2` is `sigmoid(2u)`.
        #[inline(always)]
        fn at(self, x: f32) -> f32 {
            const TWICE_ROOT: f32 = 2.0 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2;
            x * sigmoid(TWICE_ROOT * (x + 0.044_715 * x * x * x))
        }
    }

    #[derive(Clone, Copy)]
    pub(super) struct QuickGelu;

    impl Function for QuickGelu {
        #[inline(always)]
        fn at(self, x: f32) -> f32 {
            x * sigmoid(1.702 * x)
        }
    }

    #[inline(always)]
    fn sigmoid(x: f32) -> f32 {
        1.0 / (1.0 + exp(-x))
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use burn::tensor::{DType, Device, Distribution};

    type Function = fn(Tensor<3>) -> Tensor<3>;

    fn pairs() -> [(Function, Function); 3] {
        let quick: Function = |x| x.clone() * activation::sigmoid(x * 1.702);
        [(gelu, activation::gelu), (gelu_tanh, activation::gelu_approximate), (quick_gelu, quick)]
    }

    fn is_close(found: Tensor<3>, expected: Tensor<3>, tolerance: f64) {
        assert_eq!((found.dims(), found.dtype()), (expected.dims(), expected.dtype()));
        let (found, expected) = (found.into_data(), expected.into_data());
        for (found, expected) in found.iter::<f64>().zip(expected.iter::<f64>()) {
            let limit = tolerance * expected.abs().max(1.0);
            assert!((found - expected).abs() <= limit, "{found}, expected {expected}");
        }
    }

    #[test]
    fn they_are_burns() {
        for (ours, burns) in pairs() {
            for shape in [[1, 1, 1], [3, 7, 13], [2, 130, 131]] {
                let x = Tensor::random(shape, Distribution::Normal(0.0, 3.0), &Device::flex());
                is_close(ours(x.clone()), burns(x.clone()), 1e-6);
                let view = x.swap_dims(0, 2);
                is_close(ours(view.clone()), burns(view.clone()), 1e-6);
                let part = view.clone().slice_dim(1, view.dims()[1] / 2..);
                is_close(ours(part.clone()), burns(part), 1e-6);
            }
        }
    }

    #[test]
    fn narrow_types_are_left_to_burn() {
        let x = Tensor::<3>::random([2, 3, 5], Distribution::Normal(0.0, 3.0), &Device::flex());
        for dtype in [DType::F16, DType::BF16, DType::F64] {
            pairs()
                .into_iter()
                .for_each(|(ours, burns)| is_close(ours(x.clone().cast(dtype)), burns(x.clone().cast(dtype)), 0.0));
        }
    }

    #[test]
    fn ends_are_kept() {
        let ends = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -50.0, 50.0, 0.0];
        let x = || Tensor::<1>::from_data(ends, &Device::flex()).reshape([1, 1, 6]);
        for (ours, _) in pairs() {
            let found: Vec<f32> = ours(x()).into_data().iter::<f32>().collect();
            assert!(found[0] == f32::INFINITY && found[2].is_nan() && found[3].abs() < 1e-30, "{found:?}");
            assert!(found[4] == 50.0 && found[5] == 0.0, "{found:?}");
        }
    }

    #[cfg(feature = "autodiff")]
    #[test]
    fn gradients_flow() {
        let device = Device::flex().autodiff();
        for (ours, burns) in pairs() {
            let gradient = |function: Function| {
                let x = Tensor::<1>::from_data([-1.5, 0.3, 2.0], &device).reshape([1, 1, 3]).require_grad();
                let gradients = function(x.clone()).sum().backward();
                x.grad(&gradients).expect("x is on the graph")
            };
            is_close(gradient(ours), gradient(burns), 0.0);
        }
    }
}
