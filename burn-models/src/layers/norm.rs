use burn::tensor::{DType, Tensor};

/// Divides by the root of the mean square over the last dimension, then multiplies by `weight`.
///
/// Narrow types are widened to f32 in between, as the reference does; the result has the type of `weight`.
///
/// # Shapes
///
/// - `x`: `[..., size]`
/// - `weight`: `[size]`
/// - output: `[..., size]`
pub fn rms_norm<const D: usize>(x: Tensor<D>, weight: Tensor<1>, epsilon: f64) -> Tensor<D> {
    let dtype = x.dtype();
    let x = match dtype {
        DType::F32 | DType::F64 => x,
        _ => x.cast(DType::F32),
    };
    let variance = (x.clone() * x.clone()).mean_dim(D - 1);
    let normalized = x * (variance + epsilon).sqrt().recip();
    normalized.cast(weight.dtype()) * weight.unsqueeze()
}
