use crate::layers::embedding::is_host;
use crate::layers::linear::product;
use burn::tensor::{DType, Int, Tensor, activation::softmax};

/// Raw router logits: rows `[tokens, hidden]` and a weight `[experts, hidden]` to `[tokens, experts]`.
pub fn router_logits(weight: Tensor<2>, hidden_states: Tensor<2>) -> Tensor<2> {
    product(hidden_states, weight.transpose())
}

/// The experts of each token and how much each counts, both `[tokens, top k]`; the latter in f32.
///
/// They are the `top_k` most probable ones, the most probable first, unless others are `forced`. How much they count
/// are the probabilities of these logits in either case, so gradients reach the router; they add up to 1 where
/// `normalize` says so.
///
/// # Shapes
///
/// - `logits`: `[tokens, experts]`
/// - `forced`: `[tokens, top k]`
pub fn choose_experts(
    logits: Tensor<2>,
    top_k: usize,
    normalize: bool,
    forced: Option<Tensor<2, Int>>,
) -> (Tensor<2>, Tensor<2, Int>) {
    let probabilities = softmax(logits.cast(DType::F32), 1);
    let indices = forced.unwrap_or_else(|| top_k_indices(probabilities.clone(), top_k));
    let scores = probabilities.gather(1, indices.clone());
    let scores = if normalize { scores.clone() / scores.sum_dim(1) } else { scores };
    (scores, indices)
}

/// The columns of the `top_k` largest values of each row, the largest first: `[rows, columns]` to `[rows, top k]`.
/// Of equal values the one further left comes first. There are at least `top_k` columns.
pub fn top_k_indices(values: Tensor<2>, top_k: usize) -> Tensor<2, Int> {
    if is_host(&values.device()) {
        return on_host(&values, top_k);
    }
    // operations only, so that a device of its own need not stop
    let [rows, columns] = values.dims();
    let device = values.device();
    let at = Tensor::<1, Int>::arange(0..columns as i64, &device).reshape([1, columns]).expand([rows, columns]);
    let mut left = values;
    let mut chosen = Vec::with_capacity(top_k);
    for _ in 0..top_k {
        let best = left.clone().argmax(1);
        left = left.mask_fill(at.clone().equal(best.clone().expand([rows, columns])), f32::NEG_INFINITY);
        chosen.push(best);
    }
    Tensor::cat(chosen, 1)
}

fn on_host(values: &Tensor<2>, top_k: usize) -> Tensor<2, Int> {
    let [rows, columns] = values.dims();
    let data = values.clone().cast(DType::F32).into_data();
    let mut chosen: Vec<i64> = Vec::with_capacity(rows * top_k);
    for row in data.as_slice::<f32>().unwrap_or_default().chunks_exact(columns.max(1)) {
        let start = chosen.len();
        for _ in 0..top_k {
            let mut best: Option<(usize, f32)> = None;
            for (column, value) in row.iter().enumerate() {
                let is_better = best.is_none_or(|(_, best)| *value > best);
                if is_better && !chosen[start..].contains(&(column as i64)) {
                    best = Some((column, *value));
                }
            }
            chosen.push(best.map_or(0, |(column, _)| column as i64));
        }
    }
    let chosen = burn::tensor::TensorData::new(chosen, [rows, top_k]);
    Tensor::from_data(chosen, &values.device())
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use burn::tensor::Device;

    #[test]
    fn the_largest_come_first() {
        let values = Tensor::from_data([[0.1, 0.5, 0.2, 0.5], [0.4, 0.3, 0.2, 0.1]], &Device::flex());
        let indices = top_k_indices(values, 3);
        assert_eq!(indices.to_data().iter::<i64>().collect::<Vec<_>>(), [1, 3, 2, 0, 1, 2]);
    }

    #[test]
    fn forced_experts_have_the_probabilities_of_the_logits() {
        let logits = Tensor::from_data([[0.0, 1.0, 2.0]], &Device::flex());
        let forced = Tensor::<2, Int>::from_data([[0, 2]], &Device::flex());
        let (scores, indices) = choose_experts(logits.clone(), 2, true, Some(forced));
        assert_eq!(indices.to_data().iter::<i64>().collect::<Vec<_>>(), [0, 2]);
        let scores: Vec<f32> = scores.to_data().iter::<f32>().collect();
        let (low, high) = (1.0, 2.0_f32.exp());
        assert!((scores[0] - low / (low + high)).abs() < 1e-6, "{scores:?}");
        let (plain, _) = choose_experts(logits, 3, false, None);
        assert!((plain.sum().into_scalar::<f32>() - 1.0).abs() < 1e-6);
    }
}
