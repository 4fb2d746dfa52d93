//! The complete example: a Qwen2-MoE with its experts taken apart into modules of their own and its attention's three
//! projections fused into one, loaded from a checkpoint in the published layout, with the same logits, and saved back
//! to the same bytes.
//!
//! `cargo run --example fused_qwen2_moe`

use burn::nn::{Linear, LinearConfig};
use burn::prelude::*;
use burn::tensor::{IndexingUpdateOp, activation::silu};
use burnlens::burn_models::layers::attention::{AttentionShape, self_attention};
use burnlens::burn_models::layers::{LayerContext, split_heads};
use burnlens::burn_models::qwen2_moe::{Qwen2MoeAttention, Qwen2MoeConfig, Qwen2MoeExperts, Qwen2MoeForCausalLM};
use burnlens::patching_core::weights::{
    Concatenate, LoadOptions, WeightConverter, WeightRenaming, WeightTransform,
    register_checkpoint_conversion_mapping_with, unregister_checkpoint_conversion_mapping,
};
use burnlens::prelude::*;
use std::error::Error;
use std::path::Path;

/// One expert, as a module.
#[derive(Module, Debug)]
pub struct Expert {
    gate_proj: Linear,
    up_proj: Linear,
    down_proj: Linear,
}

/// Experts as a list of modules: what a quantiser of linear layers can work with.
#[derive(Module, Debug)]
pub struct ModuleListExperts {
    list: Vec<Expert>,
}

#[replaces(Qwen2MoeExperts)]
impl ModuleListExperts {
    pub fn new(config: &Qwen2MoeConfig, init: &Init) -> Self {
        let linear = |inputs, outputs| LinearConfig::new(inputs, outputs).with_bias(false).init(init.device());
        let (hidden, size) = (config.hidden_size, config.moe_intermediate_size);
        let expert = |_| Expert {
            gate_proj: linear(hidden, size),
            up_proj: linear(hidden, size),
            down_proj: linear(size, hidden),
        };
        Self { list: (0..config.num_experts).map(expert).collect() }
    }

    /// `[tokens, hidden]` to the same, by the experts `[tokens, top k]`, each times its weight.
    pub fn forward(
        &self,
        hidden_states: Tensor<2>,
        top_k_index: Tensor<2, Int>,
        top_k_weights: Tensor<2>,
        _context: &LayerContext,
    ) -> Tensor<2> {
        let mut mixed = hidden_states.zeros_like();
        for (number, expert) in self.list.iter().enumerate() {
            // a token has an expert once at most
            let weight =
                top_k_weights.clone().mask_fill(top_k_index.clone().not_equal_scalar(number as i64), 0.0).sum_dim(1);
            let rows = weight.clone().not_equal_scalar(0.0).squeeze_dim::<1>(1).argwhere();
            if rows.dims()[0] == 0 {
                continue;
            }
            let rows = rows.squeeze_dim::<1>(1);
            let x = hidden_states.clone().select(0, rows.clone());
            let gate = silu(expert.gate_proj.forward(x.clone()));
            let y = expert.down_proj.forward(gate * expert.up_proj.forward(x)) * weight.select(0, rows.clone());
            mixed = mixed.select_assign(0, rows, y, IndexingUpdateOp::Add);
        }
        mixed
    }
}

/// Attention with one projection for queries, keys and values.
#[derive(Module, Debug)]
pub struct FusedQkvAttention {
    /// `[hidden, (heads + 2 * key heads) * size]`
    qkv_proj: Linear,
    o_proj: Linear,
    #[module(skip)]
    shape: AttentionShape,
}

#[replaces(Qwen2MoeAttention)]
impl FusedQkvAttention {
    pub fn new(config: &Qwen2MoeConfig, layer_idx: usize, init: &Init) -> Self {
        let shape = AttentionShape::of(config, layer_idx);
        let fused = (shape.heads + 2 * shape.key_heads) * shape.head_dim;
        let linear = |inputs, outputs, bias| LinearConfig::new(inputs, outputs).with_bias(bias).init(init.device());
        Self {
            qkv_proj: linear(config.hidden_size, fused, config.qkv_bias),
            o_proj: linear(shape.heads * shape.head_dim, config.hidden_size, false),
            shape,
        }
    }

    pub fn forward(&self, hidden_states: Tensor<3>, context: &mut LayerContext) -> (Tensor<3>, Option<Tensor<4>>) {
        let (queries, keys) = (self.shape.heads * self.shape.head_dim, self.shape.key_heads * self.shape.head_dim);
        let fused = self.qkv_proj.forward(hidden_states);
        let part = |start: usize, size: usize, heads: usize| {
            split_heads(fused.clone().slice_dim(2, start..start + size), heads)
        };
        let query = part(0, queries, self.shape.heads);
        let key = part(queries, keys, self.shape.key_heads);
        let value = part(queries + keys, keys, self.shape.key_heads);
        let (attended, weights) = self_attention(&self.shape, query, key, value, context);
        (self.o_proj.forward(attended), weights)
    }
}

pub fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::flex();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("burn-models/tests/fixtures/qwen2_moe");
    let tokens = || Tensor::<2, Int>::from_data([[1_i64, 5, 9, 13, 17]], &device);
    let kwargs = ForwardKwargs::new().output_hidden_states(true).output_attentions(true).output_router_logits(true);
    let original = Qwen2MoeForCausalLM::from_pretrained(&folder, &device)?.forward(tokens(), &kwargs)?;

    register_patch_mapping([
        ("Qwen2MoeExperts", class::<ModuleListExperts>()),
        ("Qwen2MoeAttention", class::<FusedQkvAttention>()),
    ])?;
    // Where the parameters of the new classes come from. It takes the place of the built-in mapping, which would stack
    // the experts; here each stays by itself, under the field that holds them.
    register_checkpoint_conversion_mapping_with(
        "qwen2_moe",
        [
            WeightTransform::from(WeightRenaming::new("mlp.experts.*", "mlp.experts.list.*")),
            WeightConverter::new(["q_proj", "k_proj", "v_proj"], "qkv_proj").with(Concatenate::dim(0)).into(),
        ],
        true,
    )?;

    let (model, report) = Qwen2MoeForCausalLM::from_pretrained_with(&folder, &device, &LoadOptions::new())?;
    println!("{report}");
    let replaced = model.forward(tokens(), &kwargs)?;

    let difference = (replaced.logits - original.logits).abs().max().into_scalar::<f32>();
    println!("largest difference of the logits: {difference:e}");
    assert!(difference < 1e-5);
    // everything is recorded as before
    assert_eq!(replaced.attentions.len(), original.attentions.len());
    assert_eq!(replaced.router_logits.len(), original.router_logits.len());

    // The sizes that were joined are remembered: the same keys and the same bytes come back.
    let saved = tempfile::tempdir()?;
    let report = model.save_pretrained(saved.path())?;
    println!("{report}");
    let read = |folder: &Path| std::fs::read(folder.join("model.safetensors"));
    assert_eq!(read(saved.path())?, read(&folder)?);
    println!("saved back to the same {} bytes", read(&folder)?.len());

    unregister_patch_mapping(["Qwen2MoeExperts", "Qwen2MoeAttention"])?;
    unregister_checkpoint_conversion_mapping("qwen2_moe")?;
    Ok(())
}
