use crate::layers::linear::product;
use crate::layers::{Activation, gated_halves};
use burn::tensor::{DType, Int, Tensor};

/// What an experts function is given.
///
/// It answers with `[tokens, hidden]`: for each token the sum of what its experts make of it, each times its weight.
/// An expert is `down(activation(gate(x)) * up(x))`. An index that is no expert's (the reference uses the number of
/// experts for tokens that another machine serves) contributes nothing.
#[derive(Clone, Debug)]
pub struct Experts {
    /// `[tokens, hidden]`
    pub hidden_states: Tensor<2>,
    /// The experts of each token, `[tokens, top k]`.
    pub top_k_index: Tensor<2, Int>,
    /// How much each counts, `[tokens, top k]`; perhaps in a wider type than the hidden states.
    pub top_k_weights: Tensor<2>,
    /// The first product of every expert, gate above up: `[experts, 2 * intermediate, hidden]`.
    pub gate_up_proj: Tensor<3>,
    /// The second product of every expert, `[experts, hidden, intermediate]`.
    pub down_proj: Tensor<3>,
    /// Between the two.
    pub activation: Activation,
}

impl Experts {
    /// How many experts there are.
    pub fn num_experts(&self) -> usize {
        self.gate_up_proj.dims()[0]
    }

    /// What expert `expert` makes of rows, `[rows, hidden]` to the same; an expert that there is.
    pub fn feed_forward(&self, expert: usize, rows: Tensor<2>) -> Tensor<2> {
        let gate_up = product(rows, weight(&self.gate_up_proj, expert));
        product(gated_halves(self.activation, gate_up), weight(&self.down_proj, expert))
    }
}

/// The weight of one expert as a matrix product takes it, `[inputs, outputs]`: a view.
fn weight(all: &Tensor<3>, expert: usize) -> Tensor<2> {
    all.clone().slice_dim(0, expert..expert + 1).squeeze_dim::<2>(0).transpose()
}

/// Rows times their weights, `[rows, hidden]` and `[rows, 1]`, in the wider of both types, then in that of the rows.
pub(super) fn weighted(rows: Tensor<2>, weights: Tensor<2>) -> Tensor<2> {
    let (narrow, wide) = (rows.dtype(), weights.dtype());
    if narrow == wide {
        return rows * weights;
    }
    let common = if narrow == DType::F64 { narrow } else { wide };
    (rows.cast(common) * weights.cast(common)).cast(narrow)
}
