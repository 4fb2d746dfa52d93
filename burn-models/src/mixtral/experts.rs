use super::{MixtralConfig, MixtralTopKRouter};
use crate::layers::experts::Experts;
use crate::layers::{Activation, LayerContext};
use burn::module::{Initializer, Module, Param};
use burn::tensor::{Int, Tensor};
use patching_core::prelude::*;

/// Mixtral's experts, all in two tensors.
#[derive(Module, Debug)]
pub struct MixtralExperts {
    /// Gate above up, `[experts, 2 * intermediate, hidden]`
    pub gate_up_proj: Param<Tensor<3>>,
    /// `[experts, hidden, intermediate]`
    pub down_proj: Param<Tensor<3>>,
    #[module(skip)]
    activation: Activation,
}

#[module_class]
impl MixtralExperts {
    /// Fresh parameters.
    pub fn new(config: &MixtralConfig, init: &Init) -> Self {
        let (experts, hidden, size) = (config.num_local_experts, config.hidden_size, config.intermediate_size);
        let normal = Initializer::Normal { mean: 0.0, std: config.initializer_range };
        Self {
            gate_up_proj: normal.init([experts, 2 * size, hidden], init.device()),
            down_proj: normal.init([experts, hidden, size], init.device()),
            activation: config.hidden_act,
        }
    }

    /// `[tokens, hidden]` to the same, by the experts `[tokens, top k]`, each times its weight.
    pub fn forward(
        &self,
        hidden_states: Tensor<2>,
        top_k_index: Tensor<2, Int>,
        top_k_weights: Tensor<2>,
        context: &LayerContext,
    ) -> Tensor<2> {
        context.experts().mix(Experts {
            hidden_states,
            top_k_index,
            top_k_weights,
            gate_up_proj: self.gate_up_proj.val(),
            down_proj: self.down_proj.val(),
            activation: self.activation,
        })
    }
}

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
