use super::{Attention, AttentionOutput};
use crate::layers::{AttentionMask, MaskRequest};
use burn::tensor::{DType, Tensor, activation::softmax};

/// Attention by its formula: `softmax(query * key^T * scaling + mask) * value`, with the weights where they are
/// wanted.
///
/// Query heads that share a key head are laid below one another, so keys and values are never repeated, and parts of
/// a cache are read where they lie.
pub fn eager_attention(inputs: Attention) -> AttentionOutput {
    let [batch, heads, queries, size] = inputs.query.dims();
    let [_, key_heads, keys, value_size] = inputs.value.dims();
    let group = heads / key_heads.max(1);
    let dtype = inputs.query.dtype();

    let query = inputs.query.reshape([batch, key_heads, group * queries, size]);
    let scores = query.matmul(inputs.key.swap_dims(2, 3)) * inputs.scaling;
    let mut scores = scores.reshape([batch, heads, queries, keys]);
    if let Some(position_bias) = inputs.position_bias {
        scores = scores + position_bias;
    }
    if let Some(bias) = bias_of(&inputs.mask, &scores) {
        scores = scores + bias;
    }
    let weights = match dtype {
        DType::F32 | DType::F64 => softmax(scores, 3),
        _ => softmax(scores.cast(DType::F32), 3).cast(dtype),
    };
    let wanted = inputs.weights_wanted.then(|| weights.clone());
    let output = weights
        .reshape([batch, key_heads, group * queries, keys])
        .matmul(inputs.value)
        .reshape([batch, heads, queries, value_size]);
    (output, wanted)
}

/// The mask as a tensor, made here if it is only known as the causal order.
fn bias_of(mask: &AttentionMask, scores: &Tensor<4>) -> Option<Tensor<4>> {
    if mask.bias.is_some() || !mask.is_causal {
        return mask.bias.clone();
    }
    let [_, _, query_length, key_length] = scores.dims();
    let request = MaskRequest {
        batch: 1,
        query_length,
        key_length,
        query_offset: key_length.saturating_sub(query_length),
        key_offset: 0,
        is_causal: true,
        window: None,
        padding: None,
        segments: None,
        dtype: scores.dtype(),
        device: scores.device(),
    };
    Some(request.bias())
}
