use super::{Qwen2MoeConfig, Qwen2MoeMLP, Qwen2MoeTopKRouter};
use crate::layers::moe::experts_class;
use crate::layers::{LayerContext, linear, new_linear};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{Tensor, activation::sigmoid};
use patching_core::prelude::*;

experts_class!(
    /// Qwen2-MoE's experts, all in two tensors.
    Qwen2MoeExperts,
    Qwen2MoeConfig { num_experts, moe_intermediate_size }
);

/// Qwen2-MoE's feed-forward block with experts: those that the router chose, and one that all tokens share, as far as a
/// gate lets it through.
#[derive(Module, Debug)]
pub struct Qwen2MoeSparseMoeBlock {
    /// Chooses the experts.
    pub gate: Slot<Qwen2MoeTopKRouter>,
    /// The experts to choose from.
    pub experts: Slot<Qwen2MoeExperts>,
    /// The expert that all tokens share.
    pub shared_expert: Slot<Qwen2MoeMLP>,
    /// `[hidden, 1]`
    pub shared_expert_gate: Linear,
    #[module(skip)]
    layer_idx: usize,
}

#[module_class]
impl Qwen2MoeSparseMoeBlock {
    /// Fresh parameters for layer `layer_idx`.
    pub fn new(config: &Qwen2MoeConfig, layer_idx: usize, init: &Init) -> Self {
        let std = config.initializer_range;
        Self {
            gate: Qwen2MoeTopKRouter::slot(config, layer_idx, init),
            experts: Qwen2MoeExperts::slot(config, init),
            shared_expert: Qwen2MoeMLP::slot(config, config.shared_expert_intermediate_size, init),
            shared_expert_gate: new_linear(config.hidden_size, 1, false, std, init.device()),
            layer_idx,
        }
    }

    /// `[batch, seq, hidden]` to the same.
    pub fn forward(&self, hidden_states: Tensor<3>, context: &mut LayerContext) -> Tensor<3> {
        let [batch, seq, hidden] = hidden_states.dims();
        let rows = hidden_states.clone().reshape([batch * seq, hidden]);
        let (_, scores, indices) = self.gate.forward(rows.clone(), context);
        context.check_experts(self.layer_idx, &indices);
        let routed = self.experts.forward(rows, indices, scores, context).reshape([batch, seq, hidden]);
        let share = sigmoid(linear(&self.shared_expert_gate, hidden_states.clone()));
        routed + self.shared_expert.forward(hidden_states) * share
    }
}

/// What follows attention: experts, or one block for all tokens. Both have the path `mlp`, and the same keys in a
/// checkpoint as if they lay in the layer itself.
#[derive(Module, Debug)]
pub enum Qwen2MoeFeedForward {
    /// With experts.
    Sparse(Slot<Qwen2MoeSparseMoeBlock>),
    /// Without.
    Dense(Slot<Qwen2MoeMLP>),
}

impl Qwen2MoeFeedForward {
    /// What the config says of layer `layer_idx`, with fresh parameters.
    pub fn new(config: &Qwen2MoeConfig, layer_idx: usize, init: &Init) -> Self {
        if config.is_sparse(layer_idx) {
            Self::Sparse(Qwen2MoeSparseMoeBlock::slot(config, layer_idx, init))
        } else {
            Self::Dense(Qwen2MoeMLP::slot(config, config.intermediate_size, init))
        }
    }

    /// `[batch, seq, hidden]` to the same.
    pub fn forward(&self, hidden_states: Tensor<3>, context: &mut LayerContext) -> Tensor<3> {
        match self {
            Self::Sparse(experts) => experts.forward(hidden_states, context),
            Self::Dense(mlp) => mlp.forward(hidden_states),
        }
    }
}
