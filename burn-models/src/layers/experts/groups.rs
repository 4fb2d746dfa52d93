use crate::layers::embedding::is_readable;
use burn::tensor::{Device, Int, Tensor};
use std::ops::Range;

/// Pairs of a token and one of its experts, sorted by expert. Pair `p` is of token `p / top k`.
#[derive(Debug)]
pub(super) struct Groups {
    /// The pairs whose expert there is, those of each expert together and in order.
    pub(super) pairs: Vec<usize>,
    /// Each expert that has any, and where in `pairs` they are.
    pub(super) experts: Vec<(usize, Range<usize>)>,
    top_k: usize,
}

impl Groups {
    /// Reads the indices `[tokens, top k]` back from the device; `None` where that is not possible.
    pub(super) fn read(indices: &Tensor<2, Int>, num_experts: usize) -> Option<Self> {
        if !is_readable(&indices.device()) {
            return None;
        }
        let [_, top_k] = indices.dims();
        let data = indices.clone().try_into_data().ok()?;
        let chosen: Vec<usize> =
            data.iter::<i64>().map(|expert| usize::try_from(expert).unwrap_or(num_experts)).collect();
        Some(Self::of(&chosen, top_k, num_experts))
    }

    fn of(chosen: &[usize], top_k: usize, num_experts: usize) -> Self {
        // counting sort: where each expert's pairs begin, then each pair into its place
        let mut next = vec![0; num_experts + 1];
        for expert in chosen.iter().filter(|expert| **expert < num_experts) {
            next[expert + 1] += 1;
        }
        for expert in 0..num_experts {
            next[expert + 1] += next[expert];
        }
        let bounds = next.clone();
        let mut pairs = vec![0; bounds[num_experts]];
        for (pair, expert) in chosen.iter().enumerate().filter(|(_, expert)| **expert < num_experts) {
            pairs[next[*expert]] = pair;
            next[*expert] += 1;
        }
        let experts = (0..num_experts).map(|expert| (expert, bounds[expert]..bounds[expert + 1]));
        Self { pairs, experts: experts.filter(|(_, range)| !range.is_empty()).collect(), top_k: top_k.max(1) }
    }

    /// The token of a pair.
    pub(super) fn token(&self, pair: usize) -> usize {
        pair / self.top_k
    }

    /// The tokens of a part of the pairs, as indices.
    pub(super) fn tokens(&self, range: Range<usize>, device: &Device) -> Tensor<1, Int> {
        indices(self.pairs[range].iter().map(|pair| self.token(*pair)), device)
    }

    /// A part of the pairs, as indices.
    pub(super) fn pairs(&self, range: Range<usize>, device: &Device) -> Tensor<1, Int> {
        indices(self.pairs[range].iter().copied(), device)
    }
}

fn indices(values: impl Iterator<Item = usize>, device: &Device) -> Tensor<1, Int> {
    let values: Vec<i64> = values.map(|value| value as i64).collect();
    Tensor::from_data(values.as_slice(), device)
}

#[cfg(test)]
mod tests {
    use super::Groups;

    #[test]
    fn pairs_are_sorted_by_expert() {
        // expert 3 does not exist, and 1 has nothing to do
        let groups = Groups::of(&[2, 0, 0, 3, 2, 0], 2, 3);
        assert_eq!(groups.pairs, [1, 2, 5, 0, 4]);
        assert_eq!(groups.experts, [(0, 0..3), (2, 3..5)]);
        assert_eq!(groups.token(5), 2);
        assert!(Groups::of(&[7, 7], 1, 3).experts.is_empty());
    }
}
