//! Replacements as a user would write them, for classes of several families.

use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{IndexingUpdateOp, Int, Tensor, activation::silu};
use burn_models::config::DecoderConfig;
use burn_models::layers::attention::{AttentionShape, self_attention};
use burn_models::layers::{LayerContext, linear, new_linear, split_heads};
use burn_models::llama::LlamaAttention;
use burn_models::mixtral::{MixtralAttention, MixtralConfig, MixtralExperts};
use burn_models::qwen2_moe::{Qwen2MoeAttention, Qwen2MoeConfig, Qwen2MoeExperts};
use patching_core::prelude::*;
use patching_core::weights::{Concatenate, WeightConverter, WeightRenaming};

/// Attention with one projection; for every family whose configs say what it needs.
#[derive(Module, Debug)]
pub struct FusedQkvAttention {
    qkv_proj: Linear,
    o_proj: Linear,
    #[module(skip)]
    shape: AttentionShape,
}

/// Whether a family's projections have biases.
pub trait Biased: DecoderConfig {
    fn is_biased(&self) -> bool {
        false
    }
}
impl Biased for burn_models::llama::LlamaConfig {}
impl Biased for MixtralConfig {}
impl Biased for Qwen2MoeConfig {
    fn is_biased(&self) -> bool {
        self.qkv_bias
    }
}

#[replaces(LlamaAttention, MixtralAttention, Qwen2MoeAttention)]
impl FusedQkvAttention {
    pub fn new<C: Biased>(config: &C, layer_idx: usize, init: &Init) -> Self {
        let shape = AttentionShape::of(config, layer_idx);
        let fused = (shape.heads + 2 * shape.key_heads) * shape.head_dim;
        let hidden = config.hidden_size();
        Self {
            qkv_proj: new_linear(hidden, fused, config.is_biased(), 0.02, init.device()),
            o_proj: new_linear(shape.heads * shape.head_dim, hidden, false, 0.02, init.device()),
            shape,
        }
    }

    pub fn forward(&self, hidden_states: Tensor<3>, context: &mut LayerContext) -> (Tensor<3>, Option<Tensor<4>>) {
        let fused = linear(&self.qkv_proj, hidden_states);
        let mut start = 0;
        let mut part = |heads: usize| {
            let end = start + heads * self.shape.head_dim;
            let part = split_heads(fused.clone().slice_dim(2, start..end), heads);
            start = end;
            part
        };
        let [query, key, value] = [self.shape.heads, self.shape.key_heads, self.shape.key_heads].map(&mut part);
        let (output, weights) = self_attention(&self.shape, query, key, value, context);
        (linear(&self.o_proj, output), weights)
    }
}

pub fn fuse_qkv() -> WeightConverter {
    WeightConverter::new(["q_proj", "k_proj", "v_proj"], "qkv_proj").with(Concatenate::dim(0))
}

/// Experts as a list of modules.
#[derive(Module, Debug)]
pub struct ModuleListExperts {
    list: Vec<Expert>,
}

#[derive(Module, Debug)]
pub struct Expert {
    gate_proj: Linear,
    up_proj: Linear,
    down_proj: Linear,
}

/// What a family's experts are made of.
pub trait Sizes {
    /// Experts, hidden size, intermediate size.
    fn sizes(&self) -> [usize; 3];
}
impl Sizes for Qwen2MoeConfig {
    fn sizes(&self) -> [usize; 3] {
        [self.num_experts, self.hidden_size, self.moe_intermediate_size]
    }
}
impl Sizes for MixtralConfig {
    fn sizes(&self) -> [usize; 3] {
        [self.num_local_experts, self.hidden_size, self.intermediate_size]
    }
}

#[replaces(Qwen2MoeExperts, MixtralExperts)]
impl ModuleListExperts {
    pub fn new<C: Sizes>(config: &C, init: &Init) -> Self {
        let [experts, hidden, size] = config.sizes();
        let expert = |_| Expert {
            gate_proj: new_linear(hidden, size, false, 0.02, init.device()),
            up_proj: new_linear(hidden, size, false, 0.02, init.device()),
            down_proj: new_linear(size, hidden, false, 0.02, init.device()),
        };
        Self { list: (0..experts).map(expert).collect() }
    }

    pub fn forward(
        &self,
        hidden_states: Tensor<2>,
        top_k_index: Tensor<2, Int>,
        top_k_weights: Tensor<2>,
        _context: &LayerContext,
    ) -> Tensor<2> {
        let mut mixed = hidden_states.zeros_like();
        for (number, expert) in self.list.iter().enumerate() {
            let others = top_k_index.clone().not_equal_scalar(number as i64);
            let weight = top_k_weights.clone().mask_fill(others, 0.0).sum_dim(1);
            let rows = weight.clone().not_equal_scalar(0.0).squeeze_dim::<1>(1).argwhere();
            if rows.dims()[0] == 0 {
                continue;
            }
            let rows = rows.squeeze_dim::<1>(1);
            let x = hidden_states.clone().select(0, rows.clone());
            let inner = silu(linear(&expert.gate_proj, x.clone())) * linear(&expert.up_proj, x);
            let y = linear(&expert.down_proj, inner) * weight.select(0, rows.clone());
            mixed = mixed.select_assign(0, rows, y, IndexingUpdateOp::Add);
        }
        mixed
    }
}

/// Experts by themselves, under the field that holds them.
pub fn list_experts() -> WeightRenaming {
    WeightRenaming::new("mlp.experts.*", "mlp.experts.list.*")
}
