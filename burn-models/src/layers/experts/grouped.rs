use super::call::weighted;
use super::groups::Groups;
use super::{Experts, batched_mm_experts};
use crate::layers::embedding::is_host;
use burn::tensor::{IndexingUpdateOp, Tensor};

/// Pairs of a token and an expert for which a device of its own is not stopped to read them: a gathered copy of their
/// weights costs less.
const FEW: usize = 32;

/// Experts with the tokens sorted by expert: one gather, one product for each expert on rows that lie together, one
/// scatter back.
///
/// The indices are read back from the device. Where that cannot be done, or would cost more than it brings, as
/// [`batched_mm_experts`].
pub fn grouped_mm_experts(inputs: Experts) -> Tensor<2> {
    let device = inputs.hidden_states.device();
    let [tokens, top_k] = inputs.top_k_index.dims();
    if !is_host(&device) && tokens * top_k <= FEW {
        return batched_mm_experts(inputs);
    }
    let Some(groups) = Groups::read(&inputs.top_k_index, inputs.num_experts()) else {
        return batched_mm_experts(inputs);
    };
    if groups.experts.is_empty() {
        return inputs.hidden_states.zeros_like();
    }
    #[cfg(feature = "flex")]
    if flex::serves(&inputs) {
        return flex::grouped(inputs, &groups);
    }

    let of_tokens = groups.tokens(0..groups.pairs.len(), &device);
    let gathered = inputs.hidden_states.clone().select(0, of_tokens.clone());
    let of_expert = |(expert, range): &(usize, std::ops::Range<usize>)| {
        inputs.feed_forward(*expert, gathered.clone().slice_dim(0, range.clone()))
    };
    let rows = Tensor::cat(groups.experts.iter().map(of_expert).collect(), 0);
    let weights = inputs.top_k_weights.clone().reshape([tokens * top_k, 1]);
    let rows = weighted(rows, weights.select(0, groups.pairs(0..groups.pairs.len(), &device)));
    inputs.hidden_states.zeros_like().select_assign(0, of_tokens, rows, IndexingUpdateOp::Add)
}

/// On burn-flex, where there is no graph: experts in parallel, and their rows added up in one pass.
#[cfg(feature = "flex")]
mod flex {
    use super::{Experts, Groups};
    use crate::layers::embedding::is_flex;
    use burn::tensor::{DType, Tensor, TensorData};
    use rayon::prelude::*;

    /// Elements of the result for each task: below it another thread costs more than it brings.
    const CHUNK: usize = 16 * 1024;
    /// Multiplications of one expert that keep all threads busy by themselves, as the product is cut up for them.
    const LARGE: usize = 192 * 192 * 192;

    pub(super) fn serves(inputs: &Experts) -> bool {
        let device = inputs.hidden_states.device();
        let all_f32 = [inputs.hidden_states.dtype(), inputs.top_k_weights.dtype()] == [DType::F32; 2];
        is_flex(&device) && !device.is_autodiff() && all_f32
    }

    pub(super) fn grouped(inputs: Experts, groups: &Groups) -> Tensor<2> {
        let device = inputs.hidden_states.device();
        let [tokens, hidden] = inputs.hidden_states.dims();
        let [_, width, _] = inputs.gate_up_proj.dims();
        let gathered = inputs.hidden_states.clone().select(0, groups.tokens(0..groups.pairs.len(), &device));
        let of_expert = |(expert, range): &(usize, std::ops::Range<usize>)| {
            let rows = gathered.clone().slice_dim(0, range.clone());
            inputs.feed_forward(*expert, rows).into_data()
        };
        let rows_each = groups.pairs.len() / groups.experts.len().max(1);
        let is_parallel = groups.experts.len() > rayon::current_num_threads() && rows_each * width * hidden < LARGE;
        let outputs: Vec<TensorData> = if is_parallel {
            groups.experts.par_iter().map(of_expert).collect()
        } else {
            groups.experts.iter().map(of_expert).collect()
        };
        let sums = sums(&outputs, inputs.top_k_weights.into_data(), groups, [tokens, hidden]);
        Tensor::from_data(TensorData::new(sums, [tokens, hidden]), (&device, DType::F32))
    }

    /// For each token, the rows of its experts times their weights.
    fn sums(outputs: &[TensorData], weights: TensorData, groups: &Groups, [tokens, hidden]: [usize; 2]) -> Vec<f32> {
        let rows: Vec<&[f32]> = outputs.iter().filter_map(|data| data.as_slice::<f32>().ok()).collect();
        let weights = weights.as_slice::<f32>().unwrap_or_default();
        let top_k = weights.len() / tokens.max(1);
        // where each pair's row is; a pair without an expert has none
        let mut place: Vec<&[f32]> = vec![&[]; weights.len()];
        for ((_, range), rows) in groups.experts.iter().zip(rows) {
            for (pair, row) in groups.pairs[range.clone()].iter().zip(rows.chunks_exact(hidden.max(1))) {
                place[*pair] = row;
            }
        }
        let mut sums = vec![0.0; tokens * hidden];
        let of_token = |(token, sum): (usize, &mut [f32])| {
            let pairs = token * top_k..(token + 1) * top_k;
            for (row, weight) in place[pairs.clone()].iter().zip(&weights[pairs]) {
                for (sum, value) in sum.iter_mut().zip(*row) {
                    *sum += value * weight;
                }
            }
        };
        if sums.len() <= CHUNK {
            sums.chunks_exact_mut(hidden.max(1)).enumerate().for_each(of_token);
        } else {
            sums.par_chunks_exact_mut(hidden.max(1)).enumerate().for_each(of_token);
        }
        sums
    }
}
