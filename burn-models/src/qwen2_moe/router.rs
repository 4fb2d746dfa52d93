use super::Qwen2MoeConfig;
use crate::layers::LayerContext;
use crate::layers::moe::{choose_experts, router_logits};
use burn::module::{Initializer, Module, Param};
use burn::tensor::{Int, Tensor};
use patching_core::prelude::*;

/// Where Qwen2-MoE chooses the experts of each token.
#[derive(Module, Debug)]
pub struct Qwen2MoeTopKRouter {
    /// `[experts, hidden]`
    pub weight: Param<Tensor<2>>,
    #[module(skip)]
    top_k: usize,
    #[module(skip)]
    norm_topk_prob: bool,
    #[module(skip)]
    layer_idx: usize,
}

#[module_class]
impl Qwen2MoeTopKRouter {
    /// Fresh parameters for layer `layer_idx`.
    pub fn new(config: &Qwen2MoeConfig, layer_idx: usize, init: &Init) -> Self {
        let normal = Initializer::Normal { mean: 0.0, std: config.initializer_range };
        Self {
            weight: normal.init([config.num_experts, config.hidden_size], init.device()),
            top_k: config.num_experts_per_tok,
            norm_topk_prob: config.norm_topk_prob,
            layer_idx,
        }
    }

    /// `[tokens, hidden]` to the raw logits `[tokens, experts]`, how much each chosen expert counts, and which they are,
    /// both `[tokens, top k]`. They are the most probable ones, unless the call is forced to others.
    pub fn forward(
        &self,
        hidden_states: Tensor<2>,
        context: &mut LayerContext,
    ) -> (Tensor<2>, Tensor<2>, Tensor<2, Int>) {
        let forced = context.forced_experts(self.layer_idx, &hidden_states.device());
        let logits = router_logits(self.weight.val(), hidden_states);
        let (scores, indices) = choose_experts(logits.clone(), self.top_k, self.norm_topk_prob, forced);
        let scores = scores.cast(logits.dtype());
        (logits, scores, indices)
    }
}
