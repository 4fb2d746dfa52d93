use burn::tensor::{DType, Device, Tensor, TensorData};

/// The coefficient of the cubic kernel, as in the reference.
const CUBIC: f64 = -0.75;

/// The embeddings of an image's positions for a grid of another size, by bicubic interpolation with pixels as areas; those
/// of a grid of the same size as they are. The first row, which stands for the whole image, is kept.
///
/// Interpolation along an axis is a matrix product, so that it works the same, and can be trained, on every backend.
///
/// # Shapes
///
/// - `table`: `[1 + rows * columns, hidden]`, with `grid` as `[rows, columns]`
/// - output: `[1 + rows * columns, hidden]`, with those of `wanted`
pub fn stretched_positions(table: Tensor<2>, grid: [usize; 2], wanted: [usize; 2]) -> Tensor<2> {
    if grid == wanted {
        return table;
    }
    let ([count, hidden], [rows, columns], dtype) = (table.dims(), grid, table.dtype());
    let whole = table.clone().slice_dim(0, 0..1);
    let patches = table.slice_dim(0, 1..count).cast(DType::F32);
    let (down, across) = (weights(rows, wanted[0], &patches.device()), weights(columns, wanted[1], &patches.device()));
    let patches = down.matmul(patches.reshape([rows, columns * hidden]));
    let patches = across.unsqueeze::<3>().matmul(patches.reshape([wanted[0], columns, hidden]));
    let patches = patches.reshape([wanted[0] * wanted[1], hidden]).cast(dtype);
    Tensor::cat(vec![whole, patches], 0)
}

/// How much each of `from` values counts in each of `to` values, `[to, from]`.
fn weights(from: usize, to: usize, device: &Device) -> Tensor<2> {
    let mut weights = vec![0.0_f32; from * to];
    let scale = from as f64 / to as f64;
    for (at, row) in weights.chunks_exact_mut(from).enumerate() {
        let center = (at as f64 + 0.5) * scale - 0.5;
        let first = center.floor();
        for step in [-1.0, 0.0, 1.0, 2.0] {
            // beyond the edges are the values at the edges
            let nearest = (first + step).clamp(0.0, (from - 1) as f64) as usize;
            if let Some(weight) = row.get_mut(nearest) {
                *weight += cubic((center - first - step).abs()) as f32;
            }
        }
    }
    Tensor::from_data(TensorData::new(weights, [to, from]), (device, DType::F32))
}

/// The cubic kernel at a distance of at most 2.
fn cubic(distance: f64) -> f64 {
    let a = CUBIC;
    if distance <= 1.0 {
        ((a + 2.0) * distance - (a + 3.0)) * distance * distance + 1.0
    } else {
        ((a * distance - 5.0 * a) * distance + 8.0 * a) * distance - 4.0 * a
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;

    fn rows(from: usize, to: usize) -> Vec<Vec<f32>> {
        let data = weights(from, to, &Device::flex()).into_data();
        data.iter::<f32>().collect::<Vec<_>>().chunks(from).map(<[f32]>::to_vec).collect()
    }

    #[test]
    fn every_value_is_a_mean_of_others() {
        for (from, to) in [(1, 3), (3, 1), (3, 3), (4, 7), (7, 4), (2, 9)] {
            for row in rows(from, to) {
                assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6, "{from} to {to}: {row:?}");
            }
        }
    }

    #[test]
    fn the_same_size_is_the_same() {
        assert_eq!(rows(3, 3), [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
    }

    /// As the reference's bicubic interpolation of `[0, 1, 4, 9]` to six values, without aligned corners.
    #[test]
    fn numbers_of_the_reference() {
        let values = [0.0_f32, 1.0, 4.0, 9.0];
        let found: Vec<f32> =
            rows(4, 6).iter().map(|row| row.iter().zip(values).map(|(weight, value)| weight * value).sum()).collect();
        let expected = [-0.086_805_58, 0.218_75, 1.430_555, 3.152_777_7, 6.781_25, 9.434_029];
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5), "{found:?}");
    }
}
