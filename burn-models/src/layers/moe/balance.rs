use super::top_k_indices;
use burn::tensor::{DType, Int, Tensor, activation::softmax};

/// The loss that keeps a router from preferring some experts, `[1]`; `None` without logits.
///
/// After equations 4 to 6 of [Switch Transformers](https://huggingface.co/papers/2101.03961): the number of experts
/// times the sum over experts of the share of tokens that chose one and its mean probability, over all layers
/// together. The choice is that of the logits, also where a call was forced to another.
///
/// # Shapes
///
/// - `router_logits`: for each layer `[batch * seq, experts]`
/// - `attention_mask`: `[batch, seq]` or longer, zero where a token is padding, which then does not count; of a longer
///   one only the last columns, which are the tokens of this call
pub fn load_balancing_loss(
    router_logits: &[Tensor<2>],
    top_k: usize,
    attention_mask: Option<Tensor<2, Int>>,
) -> Option<Tensor<1>> {
    let [tokens, experts] = router_logits.first()?.dims();
    let device = router_logits.first()?.device();
    let counted = match attention_mask {
        Some(mask) => {
            let [batch, columns] = mask.dims();
            let seq = (tokens / batch.max(1)).min(columns);
            mask.slice_dim(1, columns - seq..columns).reshape([batch * seq, 1]).float().cast(DType::F32)
        }
        None => Tensor::ones([tokens, 1], (&device, DType::F32)),
    };

    let at = Tensor::<1, Int>::arange(0..experts as i64, &device).reshape([1, 1, experts]);
    let at = at.expand([tokens, top_k, experts]);
    let mut chosen = Tensor::<2>::zeros([1, experts], (&device, DType::F32));
    let mut probability = chosen.clone();
    for logits in router_logits {
        let probabilities = softmax(logits.clone(), 1).cast(DType::F32);
        let indices = top_k_indices(probabilities.clone(), top_k).reshape([tokens, top_k, 1]);
        let hits = indices.expand([tokens, top_k, experts]).equal(at.clone()).float().cast(DType::F32);
        let hits = hits.sum_dim(1).reshape([tokens, experts]);
        chosen = chosen + (hits * counted.clone()).sum_dim(0);
        probability = probability + (probabilities * counted.clone()).sum_dim(0);
    }
    let rows = counted.sum() * router_logits.len() as f64;
    Some((chosen * probability).sum() * experts as f64 / (rows.clone() * rows))
}
