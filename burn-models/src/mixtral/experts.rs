use super::{MixtralConfig, MixtralTopKRouter};
use crate::layers::LayerContext;
use crate::layers::moe::experts_class;
use burn::module::Module;
use burn::tensor::Tensor;
use patching_core::prelude::*;

experts_class!(
    /// Mixtral's experts, all in two tensors.
    MixtralExperts,
    MixtralConfig { num_local_experts, intermediate_size }
);

/// Mixtral's feed-forward block: the experts that the router chose.
#[derive(Module, Debug)]
pub struct MixtralSparseMoeBlock {
    /// Chooses the experts.
    pub gate: Slot<MixtralTopKRouter>,
    /// The experts to choose from.
    pub experts: Slot<MixtralExperts>,
    #[module(skip)]
    layer_idx: usize,
}

#[module_class]
impl MixtralSparseMoeBlock {
    /// Fresh parameters for layer `layer_idx`.
    pub fn new(config: &MixtralConfig, layer_idx: usize, init: &Init) -> Self {
        Self {
            gate: MixtralTopKRouter::slot(config, layer_idx, init),
            experts: MixtralExperts::slot(config, init),
            layer_idx,
        }
    }

    /// `[batch, seq, hidden]` to the same.
    pub fn forward(&self, hidden_states: Tensor<3>, context: &mut LayerContext) -> Tensor<3> {
        let [batch, seq, hidden] = hidden_states.dims();
        let rows = hidden_states.reshape([batch * seq, hidden]);
        let (_, scores, indices) = self.gate.forward(rows.clone(), context);
        context.check_experts(self.layer_idx, &indices);
        self.experts.forward(rows, indices, scores, context).reshape([batch, seq, hidden])
    }
}
