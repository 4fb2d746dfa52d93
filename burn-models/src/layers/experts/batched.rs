use super::Experts;
use super::call::weighted;
use crate::layers::gated_halves;
use burn::tensor::Tensor;

/// Elements of gathered weights that are held at a time: 256 MB in f32.
const GATHERED: usize = 64 << 20;

/// Experts with the weights of each token's experts gathered, so that one batched product serves all.
///
/// Nothing is read back from the device, at the price of a copy of the weights for each token: right for few tokens.
/// Many are served in parts, so that the copies stay within bounds.
pub fn batched_mm_experts(inputs: Experts) -> Tensor<2> {
    let [tokens, top_k] = inputs.top_k_index.dims();
    let [_, width, hidden] = inputs.gate_up_proj.dims();
    let part = (GATHERED / (top_k * width * hidden).max(1)).max(1);
    if tokens <= part {
        return of_part(inputs);
    }
    let parts = (0..tokens).step_by(part).map(|start| {
        let range = start..(start + part).min(tokens);
        of_part(Experts {
            hidden_states: inputs.hidden_states.clone().slice_dim(0, range.clone()),
            top_k_index: inputs.top_k_index.clone().slice_dim(0, range.clone()),
            top_k_weights: inputs.top_k_weights.clone().slice_dim(0, range),
            ..inputs.clone()
        })
    });
    Tensor::cat(parts.collect(), 0)
}

fn of_part(inputs: Experts) -> Tensor<2> {
    let [tokens, top_k] = inputs.top_k_index.dims();
    let [experts, width, hidden] = inputs.gate_up_proj.dims();
    let pairs = tokens * top_k;

    let index = inputs.top_k_index.reshape([pairs]);
    let last = experts.saturating_sub(1) as i64;
    let is_none = index.clone().lower_elem(0).bool_or(index.clone().greater_elem(last));
    let index = index.clamp(0, last);

    let rows = inputs.hidden_states.unsqueeze_dim::<3>(1).expand([tokens, top_k, hidden]).reshape([pairs, hidden, 1]);
    let gate_up = inputs.gate_up_proj.select(0, index.clone()).matmul(rows).reshape([pairs, width]);
    let inner = gated_halves(inputs.activation, gate_up).unsqueeze_dim::<3>(2);
    let rows = inputs.down_proj.select(0, index).matmul(inner).reshape([pairs, hidden]);

    let rows = weighted(rows, inputs.top_k_weights.reshape([pairs, 1]));
    let rows = rows.mask_fill(is_none.unsqueeze_dim::<2>(1).expand([pairs, hidden]), 0.0);
    rows.reshape([tokens, top_k, hidden]).sum_dim(1).reshape([tokens, hidden])
}
