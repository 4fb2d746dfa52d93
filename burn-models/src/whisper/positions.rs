use burn::module::{Initializer, Module, Param, ParamId};
use burn::nn::Embedding;
use burn::tensor::{Device, Int, Shape, Tensor, TensorData};
use patching_core::prelude::*;

/// The wavelength of the slowest sine.
const SLOWEST: f64 = 10_000.0;

/// Where the decoder's tokens stand: a table that is learned.
#[derive(Module, Debug)]
pub struct WhisperPositionalEmbedding {
    /// `[positions, hidden]`
    pub weight: Param<Tensor<2>>,
}

#[module_class]
impl WhisperPositionalEmbedding {
    /// Fresh parameters of standard deviation `std` for `positions` positions.
    pub fn new(positions: usize, size: usize, std: f64, init: &Init) -> Self {
        Self { weight: Initializer::Normal { mean: 0.0, std }.init([positions, size], init.device()) }
    }

    /// `[batch or 1, seq]`, all in the table, to `[batch or 1, seq, hidden]`.
    pub fn forward(&self, position_ids: Tensor<2, Int>) -> Tensor<3> {
        burn::tensor::module::embedding(self.weight.val(), position_ids)
    }
}

/// A table of sines and cosines for `positions` positions, `[positions, size]`, which is not trained.
pub(super) fn sinusoids(positions: usize, size: usize, device: &Device) -> Embedding {
    let make = move |device: &Device, _| {
        let half = size / 2;
        let step = SLOWEST.ln() / (half.max(2) - 1) as f64;
        let angle = |at: usize, i: usize| at as f64 * (-step * i as f64).exp();
        let row = |at: usize| {
            let sines = (0..half).map(move |i| angle(at, i).sin() as f32);
            sines.chain((0..half).map(move |i| angle(at, i).cos() as f32))
        };
        let values: Vec<f32> = (0..positions).flat_map(row).collect();
        Tensor::from_data(TensorData::new(values, [positions, 2 * half]), device)
    };
    let shape = Shape::new([positions, size]);
    Embedding { weight: Param::uninitialized(ParamId::new(), make, device.clone(), false, shape) }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;

    #[test]
    fn the_first_position_is_zero_and_one() {
        let table = sinusoids(3, 8, &Device::flex()).weight;
        assert!(!table.is_require_grad());
        let values: Vec<f32> = table.val().to_data().iter::<f32>().collect();
        assert_eq!(values[..8], [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]);
        // wavelengths between one radian a position and one in ten thousand
        assert!((values[8] - 1.0_f32.sin()).abs() < 1e-6 && (values[11] - 1e-4_f32.sin()).abs() < 1e-9, "{values:?}");
    }
}
