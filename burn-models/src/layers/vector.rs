//! What the kernels for burn-flex have in common: loops in the widest vector instructions of the processor, shared
//! among threads, and functions that the compiler can turn into such instructions.
//!
//! Products and sums are never fused, so results do not depend on the processor.

use burn::tensor::{DType, Tensor};
use rayon::prelude::*;

/// Elements for each task: below it another thread costs more than it brings.
pub(super) const CHUNK: usize = 16 * 1024;

/// A loop that is compiled for each kind of processor.
///
/// `run` has to be always inlined, as all that it calls: what stays a function of its own, as a closure or a function
/// that was passed as a value may, is compiled for the least processor.
pub(super) trait Kernel {
    /// Runs through it once.
    fn run(self);
}

/// Runs `kernel` with the widest vectors that this processor has.
pub(super) fn widest(kernel: impl Kernel) {
    pulp::Arch::new().dispatch(Widest(kernel));
}

struct Widest<K>(K);

impl<K: Kernel> pulp::WithSimd for Widest<K> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        self.0.run();
    }
}

/// A function of one number, which has to be always inlined.
pub(super) trait Function: Copy + Sync {
    /// Its value at `x`.
    fn at(self, x: f32) -> f32;
}

/// Applies a function to every element of a tensor of f32, in place where it owns its values.
pub(super) fn map<const D: usize>(x: Tensor<D>, function: impl Function) -> Tensor<D> {
    let device = x.device();
    let mut data = x.into_data();
    let Ok(values) = data.as_mut_slice::<f32>() else { unreachable!("callers have looked") };
    if values.len() <= CHUNK {
        widest(Map { function, values });
    } else {
        values.par_chunks_mut(CHUNK).for_each(|values| widest(Map { function, values }));
    }
    Tensor::from_data(data, (&device, DType::F32))
}

struct Map<'a, F> {
    function: F,
    values: &'a mut [f32],
}

impl<F: Function> Kernel for Map<'_, F> {
    #[inline(always)]
    fn run(self) {
        for value in self.values {
            *value = self.function.at(*value);
        }
    }
}

/// `exp` to the last bit or two, without branches: `2^n * exp(r)` with `|r| <= ln 2 / 2`, and a polynomial for the
/// second (coefficients of the minimax fit of degree 5 as in the Cephes library).
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    /// Adding and subtracting it rounds to a whole number.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts, so that the remainder keeps its digits
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    // beyond it the result would leave the range of f32
    let x = x.clamp(-87.0, 88.0);
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    let r = x - n * LN2_HIGH - n * LN2_LOW;
    let mut p = 1.987_569_2e-4;
    p = p * r + 1.398_2e-3;
    p = p * r + 8.333_452e-3;
    p = p * r + 4.166_579_6e-2;
    p = p * r + 1.666_666_5e-1;
    p = p * r + 0.5;
    let fraction = p * r * r + r + 1.0;
    // n, between -126 and 127, is in the lowest bits of what was rounded: there it needs no conversion
    fraction * f32::from_bits((rounded.to_bits() << 23).wrapping_add(1.0_f32.to_bits()))
}

/// The error function within 1.3e-7: a polynomial in the middle, `1 - exp(-x^2) * p(1 / (1 + |x| / 2))` outside
/// (minimax fits made for this function).
#[inline(always)]
pub(super) fn erf(x: f32) -> f32 {
    const MIDDLE: f32 = 0.9;
    let square = x * x;
    let mut p = -6.111_293_3e-4;
    p = p * square + 5.016_228_6e-3;
    p = p * square - 2.678_195_8e-2;
    p = p * square + 1.128_223e-1;
    p = p * square - 3.761_253_4e-1;
    p = p * square + std::f32::consts::FRAC_2_SQRT_PI;
    let middle = p * x;
    let t = 1.0 / (1.0 + 0.5 * x.abs());
    let mut q = -2.063_113_9e-1;
    q = q * t + 5.633_164_6e-1;
    q = q * t + 2.313_869e-2;
    q = q * t + 3.446_945e-1;
    q = q * t + 2.751_394_5e-1;
    let outside = (1.0 - q * t * exp(-square)).copysign(x);
    if x.abs() < MIDDLE { middle } else { outside }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    #[test]
    fn erf_is_burns() {
        let steps: Vec<f32> = (-70_000..70_000).map(|step| step as f32 * 1e-4).collect();
        let expected = Tensor::<1>::from_data(steps.as_slice(), &Device::flex()).cast(DType::F64).erf().into_data();
        for (x, expected) in steps.into_iter().zip(expected.iter::<f64>()) {
            assert!((f64::from(erf(x)) - expected).abs() < 2e-7, "erf({x}) is {}, not {expected}", erf(x));
        }
    }

    #[test]
    fn exp_is_the_librarys() {
        for x in (-86_999..88_000).map(|step| step as f32 * 1e-3) {
            let expected = f64::from(x).exp();
            assert!((f64::from(exp(x)) - expected).abs() < 3e-7 * expected, "exp({x}) is {}, not {expected}", exp(x));
        }
    }

    #[test]
    fn what_is_no_number_stays_none() {
        assert!(exp(f32::NAN).is_nan() && erf(f32::NAN).is_nan());
        assert_eq!([erf(f32::INFINITY), erf(f32::NEG_INFINITY), erf(0.0)], [1.0, -1.0, 0.0]);
    }
}
