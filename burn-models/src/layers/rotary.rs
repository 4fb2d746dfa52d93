use crate::config::{RopeParameters, RopeType};
use burn::tensor::{DType, Int, Tensor};

/// The cosines and sines of a forward pass, computed once and used by every layer.
#[derive(Clone, Debug)]
pub struct Rotary {
    cos: Tensor<4>,
    sin: Tensor<4>,
}

impl Rotary {
    /// From tables of shape `[batch or 1, seq, rotary / 2]`, as [`rotary_tables`] gives them.
    pub fn new((cos, sin): (Tensor<3>, Tensor<3>)) -> Self {
        Self { cos: cos.unsqueeze_dim(1), sin: sin.unsqueeze_dim(1) }
    }
}

/// The frequency of each pair of values in a head of `head_dim`: half as many numbers.
///
/// Kinds that are not known count as the default one; a config that passed its checks has none.
pub fn inverse_frequencies(rope: &RopeParameters, head_dim: usize) -> Vec<f32> {
    let base = (0..head_dim / 2).map(|i| 1.0 / rope.rope_theta.powf((2 * i) as f64 / head_dim as f64));
    let factor = rope.factor.unwrap_or(1.0);
    let scaled = |frequency: f64| match rope.kind() {
        Ok(RopeType::Linear) => frequency / factor,
        Ok(RopeType::Llama3) => llama3(rope, factor, frequency),
        Ok(RopeType::Default) | Err(_) => frequency,
    };
    base.map(|frequency| scaled(frequency) as f32).collect()
}

/// Llama 3.1's stretching: long wavelengths are stretched, short ones kept, those between blended.
fn llama3(rope: &RopeParameters, factor: f64, frequency: f64) -> f64 {
    let low = rope.low_freq_factor.unwrap_or(1.0);
    let high = rope.high_freq_factor.unwrap_or(4.0);
    let context = rope.original_max_position_embeddings.unwrap_or(8192.0);
    let wavelength = 2.0 * std::f64::consts::PI / frequency;
    if wavelength < context / high {
        frequency
    } else if wavelength > context / low {
        frequency / factor
    } else {
        let kept = (context / wavelength - low) / (high - low);
        (1.0 - kept) * frequency / factor + kept * frequency
    }
}

/// The cosines and sines of the angles at `position_ids`.
///
/// Both halves of a head turn by the same angles, so the tables hold one half only.
///
/// # Shapes
///
/// - `position_ids`: `[batch or 1, seq]`
/// - output, twice: `[batch or 1, seq, rotary / 2]`
pub fn rotary_tables(frequencies: &[f32], position_ids: Tensor<2, Int>, dtype: DType) -> (Tensor<3>, Tensor<3>) {
    let device = position_ids.device();
    let frequencies = Tensor::<1>::from_data(frequencies, (&device, DType::F32));
    // Angles need the precision of f32, whatever the model computes in.
    let positions = position_ids.float().cast(DType::F32).unsqueeze_dim::<3>(2);
    let angles = positions * frequencies.unsqueeze();
    (angles.clone().cos().cast(dtype), angles.sin().cast(dtype))
}

/// Turns the pairs `(i, i + rotary / 2)` of each head by the angle of its position.
///
/// # Shapes
///
/// - `x`: `[batch, heads, seq, size]`
/// - output: the same; values past `rotary` stay as they are
pub fn apply_rotary(x: Tensor<4>, rotary: &Rotary) -> Tensor<4> {
    let half = rotary.cos.dims()[3];
    let size = x.dims()[3];
    let first = x.clone().slice_dim(3, 0..half);
    let second = x.clone().slice_dim(3, half..2 * half);
    let (cos, sin) = (rotary.cos.clone(), rotary.sin.clone());
    let turned_first = first.clone() * cos.clone() - second.clone() * sin.clone();
    let turned_second = second * cos + first * sin;
    let mut parts = vec![turned_first, turned_second];
    if size > 2 * half {
        parts.push(x.slice_dim(3, 2 * half..size));
    }
    Tensor::cat(parts, 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn llama3_keeps_high_and_divides_low_frequencies() {
        let rope = RopeParameters {
            rope_type: "llama3".to_owned(),
            factor: Some(8.0),
            low_freq_factor: Some(1.0),
            high_freq_factor: Some(4.0),
            original_max_position_embeddings: Some(64.0),
            ..RopeParameters::default()
        };
        let plain = inverse_frequencies(&RopeParameters::default(), 64);
        let stretched = inverse_frequencies(&rope, 64);
        assert_eq!(stretched[0], plain[0]);
        assert_eq!(stretched[31], plain[31] / 8.0);
        assert!(stretched.iter().zip(&plain).any(|(s, p)| *s < *p && *s > *p / 8.0));
    }

    #[test]
    fn linear_divides_all_frequencies() {
        let rope = RopeParameters { rope_type: "linear".to_owned(), factor: Some(2.0), ..RopeParameters::default() };
        let plain = inverse_frequencies(&RopeParameters::default(), 8);
        let halved: Vec<f32> = plain.iter().map(|f| f / 2.0).collect();
        assert_eq!(inverse_frequencies(&rope, 8), halved);
    }
}
