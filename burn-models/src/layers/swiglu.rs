//! `silu(gate) * up` in one pass.
//!
//! Burn's flex backend computes `silu` one element at a time on one thread, with the C library's `exp`; at the sizes of
//! a prefill that is 7 % of the whole forward pass. Here it is one loop that the compiler turns into vector
//! instructions, on all threads. Elsewhere, and on a graph, the two operations are used as they are.

use super::Activation;
use burn::tensor::{Tensor, activation::silu};

/// `silu(gate) * up`, element by element: `[batch, seq, size]` twice to the same.
pub fn silu_gated(gate: Tensor<3>, up: Tensor<3>) -> Tensor<3> {
    #[cfg(feature = "flex")]
    {
        let device = gate.device();
        if super::embedding::is_flex(&device) && !device.is_autodiff() {
            return one_pass::silu_gated(gate, up);
        }
    }
    silu(gate) * up
}

/// `activation(gate) * up`, where both lie next to each other in a row: `[rows, 2 * size]` to `[rows, size]`.
pub fn gated_halves(activation: Activation, gate_up: Tensor<2>) -> Tensor<2> {
    let is_silu = matches!(activation, Activation::Silu | Activation::Swish);
    #[cfg(feature = "flex")]
    {
        let device = gate_up.device();
        if is_silu && super::embedding::is_flex(&device) && !device.is_autodiff() {
            return one_pass::silu_halves(gate_up);
        }
    }
    let [_, width] = gate_up.dims();
    let gate = gate_up.clone().slice_dim(1, 0..width / 2);
    let up = gate_up.slice_dim(1, width / 2..width);
    if is_silu { silu(gate) * up } else { activation.forward(gate) * up }
}

#[cfg(feature = "flex")]
mod one_pass {
    use crate::layers::vector::{CHUNK, Kernel, exp, widest};
    use burn::tensor::{DType, Tensor, TensorData, activation::silu};
    use rayon::prelude::*;

    pub(super) fn silu_gated(gate: Tensor<3>, up: Tensor<3>) -> Tensor<3> {
        if gate.dtype() != DType::F32 || up.dtype() != DType::F32 || gate.dims() != up.dims() {
            return silu(gate) * up;
        }
        let device = gate.device();
        // both own their values, so nothing is copied on the way out and back in
        let (mut gate, up) = (gate.into_data(), up.into_data());
        multiply(&mut gate, &up);
        Tensor::from_data(gate, (&device, DType::F32))
    }

    pub(super) fn silu_halves(gate_up: Tensor<2>) -> Tensor<2> {
        let ([rows, width], device) = (gate_up.dims(), gate_up.device());
        let size = width / 2;
        if gate_up.dtype() != DType::F32 || size == 0 {
            let gate = gate_up.clone().slice_dim(1, 0..size);
            return silu(gate) * gate_up.slice_dim(1, size..width);
        }
        let gate_up = gate_up.into_data();
        let Ok(values) = gate_up.as_slice::<f32>() else { unreachable!("it was found to be f32") };
        let mut product = vec![0.0; rows * size];
        let each = |(products, values): (&mut [f32], &[f32])| {
            let (gate, up) = values.split_at(size);
            widest(Products { products, gate, up });
        };
        if product.len() <= CHUNK {
            product.chunks_exact_mut(size).zip(values.chunks_exact(width)).for_each(each);
        } else {
            product.par_chunks_exact_mut(size).zip(values.par_chunks_exact(width)).for_each(each);
        }
        Tensor::from_data(TensorData::new(product, [rows, size]), (&device, DType::F32))
    }

    fn multiply(gate: &mut TensorData, up: &TensorData) {
        let (Ok(gate), Ok(up)) = (gate.as_mut_slice::<f32>(), up.as_slice::<f32>()) else {
            unreachable!("both were found to be f32")
        };
        let each = |(gate, up): (&mut [f32], &[f32])| widest(InPlace { gate, up });
        if gate.len() <= CHUNK {
            each((gate, up));
        } else {
            gate.par_chunks_mut(CHUNK).zip(up.par_chunks(CHUNK)).for_each(each);
        }
    }

    struct Products<'a> {
        products: &'a mut [f32],
        gate: &'a [f32],
        up: &'a [f32],
    }

    impl Kernel for Products<'_> {
        #[inline(always)]
        fn run(self) {
            for ((product, gate), up) in self.products.iter_mut().zip(self.gate).zip(self.up) {
                *product = silu_of(*gate) * up;
            }
        }
    }

    struct InPlace<'a> {
        gate: &'a mut [f32],
        up: &'a [f32],
    }

    impl Kernel for InPlace<'_> {
        #[inline(always)]
        fn run(self) {
            for (gate, up) in self.gate.iter_mut().zip(self.up) {
                *gate = silu_of(*gate) * up;
            }
        }
    }

    /// `x / (1 + exp(-x))`.
    #[inline(always)]
    fn silu_of(x: f32) -> f32 {
        x / (1.0 + exp(-x))
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use burn::tensor::Device;

        #[test]
        fn it_is_the_two_operations() {
            let device = Device::flex();
            let steps: Vec<f32> = (-40_000..40_000).map(|step| step as f32 * 0.0025).collect();
            let gate = Tensor::<1>::from_data(steps.as_slice(), &device).reshape([4, 100, 200]);
            let up = gate.clone() * 0.5 + 1.0;
            let expected = (silu(gate.clone()) * up.clone()).into_data();
            let found = silu_gated(gate, up).into_data();
            let (Ok(expected), Ok(found)) = (expected.as_slice::<f32>(), found.as_slice::<f32>()) else {
                panic!("both are f32")
            };
            for (expected, found) in expected.iter().zip(found) {
                assert!((expected - found).abs() <= 3e-7 * expected.abs().max(1e-3), "{found}, expected {expected}");
            }
        }

        #[test]
        fn halves_are_the_two_operations() {
            let device = Device::flex();
            for rows in [1, 3, 70] {
                let shape = [rows, 2 * 300];
                let gate_up = Tensor::<2>::random(shape, burn::tensor::Distribution::Normal(0.0, 2.0), &device);
                let (gate, up) = (gate_up.clone().slice_dim(1, 0..300), gate_up.clone().slice_dim(1, 300..600));
                let expected = (silu(gate) * up).into_data();
                let found = silu_halves(gate_up).into_data();
                let pairs = found.iter::<f32>().zip(expected.iter::<f32>());
                assert!(pairs.into_iter().all(|(found, expected)| (found - expected).abs() < 1e-5));
            }
        }

        #[test]
        fn what_is_no_number_stays_none() {
            assert!(silu_of(f32::NAN).is_nan());
            assert_eq!(silu_of(f32::INFINITY), f32::INFINITY);
            assert!(silu_of(-100.0).abs() < 1e-30);
            assert_eq!(silu_of(0.0), 0.0);
        }
    }
}
