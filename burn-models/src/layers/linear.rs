use burn::module::Initializer;
use burn::nn::Linear;
#[cfg(feature = "flex")]
use burn::tensor::DType;
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
    let folded = with_bias(product(x.reshape([rows, inputs]), weight), layer.bias.as_ref().map(|bias| bias.val()));
    shape[D - 1] = outputs;
    folded.reshape(shape)
}

/// Adds a bias `[outputs]`, if there is one, to each row of `[rows, outputs]`.
pub(crate) fn with_bias(x: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<2> {
    let Some(bias) = bias else { return x };
    #[cfg(feature = "flex")]
    {
        let device = x.device();
        let are_f32 = x.dtype() == DType::F32 && bias.dtype() == DType::F32;
        if are_f32 && super::embedding::is_flex(&device) && !device.is_autodiff() {
            return strips::with_bias(x, bias);
        }
    }
    x + bias.unsqueeze()
}

/// The matrix product of rows `[rows, inputs]` and a weight `[inputs, outputs]`.
///
/// What burn-flex gives to a single thread or sends through memory is cut into strips of columns here; every value is
/// the same sum of the same products.
pub(crate) fn product(x: Tensor<2>, weight: Tensor<2>) -> Tensor<2> {
    #[cfg(feature = "flex")]
    {
        let device = x.device();
        if super::embedding::is_flex(&device) && !device.is_autodiff() {
            super::memory::keep_for_results();
            return strips::product(x, weight);
        }
    }
    x.matmul(weight)
}

#[cfg(feature = "flex")]
mod strips {
    use crate::layers::vector::{CHUNK, Kernel, widest};
    use burn::tensor::{DType, Tensor};
    use rayon::prelude::*;

    /// Elements of a weight that are worth another thread: reading them takes longer than waking it.
    const SHARE: usize = 128 * 1024;
    /// Columns of a strip where the result is too wide for the caches.
    const WIDTH: usize = 4096;

    pub(super) fn product(x: Tensor<2>, weight: Tensor<2>) -> Tensor<2> {
        let ([rows, _], [inputs, outputs]) = (x.dims(), weight.dims());
        let threads = rayon::current_num_threads().min(inputs * outputs / SHARE);
        if !matches!(weight.dtype(), DType::F32 | DType::F16 | DType::BF16) {
            x.matmul(weight)
        } else if rows == 1 && threads > 1 {
            one_row(x, weight, threads)
        } else if rows > 1 && outputs >= 4 * WIDTH {
            wide(x, weight)
        } else {
            x.matmul(weight)
        }
    }

    /// In place, on all threads.
    pub(super) fn with_bias(x: Tensor<2>, bias: Tensor<1>) -> Tensor<2> {
        let (device, [_, outputs]) = (x.device(), x.dims());
        let (mut x, bias) = (x.into_data(), bias.into_data());
        let (Ok(values), Ok(bias)) = (x.as_mut_slice::<f32>(), bias.as_slice::<f32>()) else {
            unreachable!("both were found to be f32")
        };
        let add = |rows: &mut [f32]| widest(AddToRows { rows, bias });
        if values.len() <= CHUNK {
            add(values);
        } else {
            values.par_chunks_mut(CHUNK.div_ceil(outputs) * outputs).for_each(add);
        }
        Tensor::from_data(x, (&device, DType::F32))
    }

    struct AddToRows<'a> {
        rows: &'a mut [f32],
        bias: &'a [f32],
    }

    impl Kernel for AddToRows<'_> {
        #[inline(always)]
        fn run(self) {
            for row in self.rows.chunks_exact_mut(self.bias.len().max(1)) {
                for (value, bias) in row.iter_mut().zip(self.bias) {
                    *value += bias;
                }
            }
        }
    }

    /// A single row is bound by reading the weight: each thread reads a part.
    fn one_row(x: Tensor<2>, weight: Tensor<2>, threads: usize) -> Tensor<2> {
        let [_, outputs] = weight.dims();
        let width = outputs.div_ceil(threads);
        let strips = (0..outputs).step_by(width).collect::<Vec<_>>();
        let strips = strips.into_par_iter().map(|start| x.clone().matmul(columns(&weight, start, width)));
        Tensor::cat(strips.collect(), 1)
    }

    /// A product of a whole vocabulary goes through memory that no cache holds; written strip by strip into place, so
    /// that the result never exists twice.
    fn wide(x: Tensor<2>, weight: Tensor<2>) -> Tensor<2> {
        let ([rows, _], [_, outputs]) = (x.dims(), weight.dims());
        let empty = Tensor::empty([rows, outputs], (&x.device(), x.dtype()));
        (0..outputs).step_by(WIDTH).fold(empty, |product, start| {
            let strip = x.clone().matmul(columns(&weight, start, WIDTH));
            product.slice_assign([0..rows, start..start + strip.dims()[1]], strip)
        })
    }

    fn columns(weight: &Tensor<2>, start: usize, width: usize) -> Tensor<2> {
        let [_, outputs] = weight.dims();
        weight.clone().slice_dim(1, start..(start + width).min(outputs))
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use burn::tensor::{Device, Distribution};

        fn bits(tensor: Tensor<2>) -> Vec<f32> {
            tensor.into_data().iter::<f32>().collect()
        }

        #[test]
        fn biases_are_added_to_rows() {
            use super::super::with_bias;
            let device = Device::flex();
            for shape in [[1, 1], [3, 7], [5, 1000], [33, 701], [0, 4]] {
                let x = Tensor::<2>::random(shape, Distribution::Default, &device);
                let bias = Tensor::<1>::random([shape[1]], Distribution::Default, &device);
                let plain = |x: Tensor<2>, bias: Tensor<1>| x + bias.unsqueeze();
                let expected = bits(plain(x.clone(), bias.clone()));
                assert_eq!(bits(with_bias(x.clone(), Some(bias.clone()))), expected);
                let view = x.clone().transpose().reshape([shape[1], shape[0]]);
                let view = Tensor::cat(vec![view.clone(), view], 1).slice_dim(1, 0..shape[0]).transpose();
                assert_eq!(bits(with_bias(view, Some(bias.clone()))), expected);
                assert_eq!(bits(with_bias(x.clone(), None)), bits(x.clone()));
                for dtype in [DType::F16, DType::BF16] {
                    let (x, bias) = (x.clone().cast(dtype), bias.clone().cast(dtype));
                    let found = with_bias(x.clone(), Some(bias.clone()));
                    assert_eq!(found.dtype(), dtype);
                    assert_eq!(bits(found), bits(plain(x, bias)));
                }
            }
        }

        #[cfg(feature = "autodiff")]
        #[test]
        fn biases_get_gradients() {
            let device = Device::flex().autodiff();
            let bias = Tensor::<1>::zeros([3], &device).require_grad();
            let sum = super::super::with_bias(Tensor::ones([5, 3], &device), Some(bias.clone())).sum();
            let gradient = bias.grad(&sum.backward()).expect("the bias is on the graph");
            assert_eq!(gradient.into_data().iter::<f32>().collect::<Vec<_>>(), [5.0; 3]);
        }

        #[test]
        fn strips_are_the_product() {
            let device = Device::flex();
            let random = |shape: [usize; 2]| Tensor::<2>::random(shape, Distribution::Default, &device);
            let (x, weight) = (random([3, 32]), random([4 * WIDTH + 5, 32]).transpose());
            let close = |found: Tensor<2>, expected: Tensor<2>| {
                assert_eq!(found.dims(), expected.dims());
                let pairs = bits(found).into_iter().zip(bits(expected));
                assert!(pairs.into_iter().all(|(found, expected)| (found - expected).abs() < 1e-4));
            };
            close(wide(x.clone(), weight.clone()), x.clone().matmul(weight.clone()));
            let row = x.slice_dim(0, 1..2);
            for threads in [2, 3, 7] {
                close(one_row(row.clone(), weight.clone(), threads), row.clone().matmul(weight.clone()));
            }
        }
    }
}
