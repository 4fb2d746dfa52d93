use burn::tensor::Tensor;

/// Splits hidden states into heads: `[batch, seq, heads * size]` to `[batch, heads, seq, size]`.
pub fn split_heads(x: Tensor<3>, heads: usize) -> Tensor<4> {
    let [batch, seq, width] = x.dims();
    let size = width / heads.max(1);
    if seq == 1 {
        // The order of the values is the same, so nothing needs to move.
        return x.reshape([batch, heads, 1, size]);
    }
    x.reshape([batch, seq, heads, size]).swap_dims(1, 2)
}

/// Joins heads again: `[batch, heads, seq, size]` to `[batch, seq, heads * size]`.
pub fn merge_heads(x: Tensor<4>) -> Tensor<3> {
    let [batch, heads, seq, size] = x.dims();
    if seq == 1 {
        return x.reshape([batch, 1, heads * size]);
    }
    x.swap_dims(1, 2).reshape([batch, seq, heads * size])
}
