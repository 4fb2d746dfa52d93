//! The smallest cases on wgpu; without a graphics card a software Vulkan driver serves.

use crate::support::{Case, TOLERANCE, assert_close, assert_close_data, flat, run};
use burn::tensor::{Device, DeviceKind};
use burn_models::LanguageModelOutput;
use burn_models::llama::LlamaForCausalLM;
use burn_models::mistral::MistralForCausalLM;
use burn_models::mixtral::MixtralForCausalLM;
use burn_models::models::CausalLM;
use burn_models::qwen2::Qwen2ForCausalLM;
use burn_models::qwen2_moe::Qwen2MoeForCausalLM;
use burn_models::qwen3::Qwen3ForCausalLM;
use patching_core::prelude::*;

fn check<M: CausalLM + PreTrainedModel>(name: &'static str) {
    let device = Device::wgpu(DeviceKind::DefaultDevice);
    let case = Case::new(name);
    let model: M = case.load(&device);
    let output = run(&case, &model, &device);
    let values = flat(&output.as_tuple());
    let expected = case.expected("outputs.safetensors");
    assert!(expected.len() > 3, "there is something to compare");
    for (key, expected) in &expected {
        assert_close_data(key, values.get(key).expect("recorded"), expected, TOLERANCE);
    }
    // the fused path, where nothing is recorded
    let off = ForwardKwargs::new().use_cache(false);
    let output = model.forward_causal(case.inputs(&device), &off).expect("runs");
    assert_close("logits alone", output.logits(), &expected["logits"], TOLERANCE);
}

#[test]
fn mixtral() {
    check::<MixtralForCausalLM>("mixtral");
}

#[test]
fn qwen2_moe() {
    check::<Qwen2MoeForCausalLM>("qwen2_moe");
}

#[test]
fn llama_tied() {
    check::<LlamaForCausalLM>("llama-tied");
}

#[test]
fn llama3_rope() {
    check::<LlamaForCausalLM>("llama3-rope");
}

#[test]
fn mistral() {
    check::<MistralForCausalLM>("mistral");
}

#[test]
fn qwen2() {
    check::<Qwen2ForCausalLM>("qwen2");
}

#[test]
fn qwen3() {
    check::<Qwen3ForCausalLM>("qwen3");
}
