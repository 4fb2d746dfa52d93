use super::call::weighted;
use super::groups::Groups;
use super::{Experts, batched_mm_experts};
use burn::tensor::{IndexingUpdateOp, Tensor};

/// Experts by their definition: one after the other, each for the tokens that chose it.
///
/// Which they are is read back from the device; where that cannot be done, as [`batched_mm_experts`].
pub fn eager_experts(inputs: Experts) -> Tensor<2> {
    let Some(groups) = Groups::read(&inputs.top_k_index, inputs.num_experts()) else {
        return batched_mm_experts(inputs);
    };
    let [tokens, top_k] = inputs.top_k_weights.dims();
    let device = inputs.hidden_states.device();
    let weights = inputs.top_k_weights.clone().reshape([tokens * top_k, 1]);
    let mut output = inputs.hidden_states.zeros_like();
    for (expert, range) in &groups.experts {
        let of_tokens = groups.tokens(range.clone(), &device);
        let rows = inputs.hidden_states.clone().select(0, of_tokens.clone());
        let weights = weights.clone().select(0, groups.pairs(range.clone(), &device));
        let rows = weighted(inputs.feed_forward(*expert, rows), weights);
        output = output.select_assign(0, of_tokens, rows, IndexingUpdateOp::Add);
    }
    output
}
