//! A quantised layer in the place of a trained one: the feed-forward blocks of a model that was loaded, with their weights
//! as bytes and a scale for each column, a quarter of the memory.
//!
//! `cargo run --example int8_mlp`

use burn::module::{Initializer, Param, ParamId};
use burn::nn::Linear;
use burn::prelude::*;
use burn::tensor::{DType, IntDType, activation::silu};
use burnlens::burn_models::llama::{LlamaConfig, LlamaForCausalLM, LlamaMLP};
use burnlens::patching_core::patch::replace_slots;
use burnlens::prelude::*;
use std::error::Error;

/// A linear layer with weights of eight bits: `weight * scale` is what it stands for.
#[derive(Module, Debug)]
pub struct Int8Linear {
    /// `[inputs, outputs]`, from -127 to 127
    weight: Param<Tensor<2, Int>>,
    /// `[1, outputs]`
    scale: Param<Tensor<2>>,
}

impl Int8Linear {
    fn zeros(inputs: usize, outputs: usize, device: &Device) -> Self {
        let weight = Tensor::zeros([inputs, outputs], (device, DType::I8));
        Self { weight: Param::initialized(ParamId::new(), weight), scale: Initializer::Ones.init([1, outputs], device) }
    }

    /// Rounds to the nearest of 255 steps, which are as wide as the largest weight of a column needs.
    fn quantize(layer: &Linear) -> Self {
        let weight = layer.weight.val();
        let scale = weight.clone().abs().max_dim(0).clamp_min(1e-12) / 127.0;
        let steps = (weight / scale.clone()).round().int().cast(IntDType::I8);
        Self { weight: Param::initialized(ParamId::new(), steps), scale: Param::from_tensor(scale) }
    }

    /// `[..., inputs]` to `[..., outputs]`; the scale is of columns, so it can come after the product.
    fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let [batch, seq, inputs] = x.dims();
        let product = x.reshape([batch * seq, inputs]).matmul(self.weight.val().float()) * self.scale.val();
        let [_, outputs] = product.dims();
        product.reshape([batch, seq, outputs])
    }

    fn bytes(&self) -> usize {
        self.weight.val().shape().num_elements() + 4 * self.scale.val().shape().num_elements()
    }
}

/// Llama's feed-forward block in eight bits.
#[derive(Module, Debug)]
pub struct Int8Mlp {
    gate_proj: Int8Linear,
    up_proj: Int8Linear,
    down_proj: Int8Linear,
}

#[replaces(LlamaMLP)]
impl Int8Mlp {
    pub fn new(config: &LlamaConfig, init: &Init) -> Self {
        let linear = |inputs, outputs| Int8Linear::zeros(inputs, outputs, init.device());
        Self {
            gate_proj: linear(config.hidden_size, config.intermediate_size),
            up_proj: linear(config.hidden_size, config.intermediate_size),
            down_proj: linear(config.intermediate_size, config.hidden_size),
        }
    }

    pub fn forward(&self, hidden_states: Tensor<3>) -> Tensor<3> {
        let gate = silu(self.gate_proj.forward(hidden_states.clone()));
        self.down_proj.forward(gate * self.up_proj.forward(hidden_states))
    }
}

impl Int8Mlp {
    fn quantize(mlp: &LlamaMLP) -> Self {
        Self {
            gate_proj: Int8Linear::quantize(&mlp.gate_proj),
            up_proj: Int8Linear::quantize(&mlp.up_proj),
            down_proj: Int8Linear::quantize(&mlp.down_proj),
        }
    }
}

pub fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::flex();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/models/tiny-decoder");
    let mut model = LlamaForCausalLM::from_pretrained(folder, &device)?;
    let tokens = || Tensor::<2, Int>::from_data([[2_i64, 13, 6, 25, 8, 13, 6]], &device);
    let kwargs = ForwardKwargs::new().output_hidden_states(true);
    let full = model.forward(tokens(), &kwargs)?;

    // Each slot is given what it holds, so the trained weights are there to be quantised.
    let (mut before, mut after) = (0, 0);
    let originals = replace_slots::<LlamaMLP, _>(&mut model, "layers.*.mlp", |path, slot| {
        let Some(mlp) = slot.implementation::<LlamaMLP>() else { return slot.clone() };
        let quantised = Int8Mlp::quantize(mlp);
        let bytes: usize =
            [&quantised.gate_proj, &quantised.up_proj, &quantised.down_proj].iter().map(|layer| layer.bytes()).sum();
        println!("{path}: {} bytes -> {bytes}", 4 * mlp.num_params());
        (before, after) = (before + 4 * mlp.num_params(), after + bytes);
        Slot::of(quantised)
    })?;
    assert!(after * 3 < before);

    // The same recorders see the new layers, so both can be compared layer by layer.
    let small = model.forward(tokens(), &kwargs)?;
    for ((layer, _, one), (_, _, other)) in full.hidden_states.iter().zip(small.hidden_states.iter()) {
        let norm = |x: Tensor<3>| x.powi_scalar(2).sum().sqrt().into_scalar::<f32>();
        let error = norm(one.clone() - other.clone()) / norm(one.clone());
        println!("hidden_states[{layer}]: relative error {error:.5}");
        assert!(error < 0.02);
    }
    let next = |logits: Tensor<3>| logits.slice([0..1, 6..7]).argmax(2).into_scalar::<i64>();
    println!("next token: {} in full, {} in eight bits", next(full.logits.clone()), next(small.logits.clone()));
    assert_eq!(next(full.logits.clone()), next(small.logits));

    originals.put_back(&mut model)?;
    let again = model.forward(tokens(), &kwargs)?;
    assert_eq!(again.logits.into_data(), full.logits.into_data());
    Ok(())
}
