//! The smallest cases on wgpu; without a graphics card a software Vulkan driver serves.

use crate::support::{Case, TOLERANCE, assert_close, assert_close_data, flat, run};
use burn::tensor::{Device, DeviceKind, Int, Tensor};
use burn_models::llama::LlamaForCausalLM;
use burn_models::mistral::MistralForCausalLM;
use burn_models::mixtral::MixtralForCausalLM;
use burn_models::models::CausalLM;
use burn_models::qwen2::Qwen2ForCausalLM;
use burn_models::qwen2_moe::Qwen2MoeForCausalLM;
use burn_models::qwen3::Qwen3ForCausalLM;
use burn_models::routing::ExpertRouting;
use burn_models::{LanguageModelOutput, TextInputs};
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

/// Each implementation of experts, with many tokens and with one, and a routing that is forced on routers.
#[test]
fn experts_and_routing() {
    let device = Device::wgpu(DeviceKind::DefaultDevice);
    let case = Case::new("qwen2_moe");
    let mut model: Qwen2MoeForCausalLM = case.load(&device);
    let expected = case.expected("outputs.safetensors");
    let kwargs = ForwardKwargs::new().output("router_indices", true).use_cache(true);
    let next = || TextInputs::new(Tensor::<2, Int>::from_data([[7], [11]], &device));
    let mut after: Vec<Tensor<3>> = Vec::new();
    for experts in ["grouped_mm", "eager", "batched_mm"] {
        model.set_experts_implementation(experts).expect("built in");
        let plain = model.forward(case.inputs(&device), &kwargs).expect("runs");
        assert_close(experts, &plain.logits, &expected["logits"], TOLERANCE);
        let routing = ExpertRouting::from_recorded(&plain.router_indices, 4).expect("recorded");
        let moved: Vec<u8> = routing.to_array::<u8>().expect("fits").iter().map(|expert| (expert + 2) % 4).collect();
        let moved = ExpertRouting::from_array(&moved, routing.shape(), 4).expect("valid");
        let run = |routing: ExpertRouting| {
            model.forward(case.inputs(&device).expert_routing(routing), &kwargs).expect("runs")
        };
        assert_close(experts, &run(routing).logits, &plain.logits.to_data(), 1e-6);
        let found = run(moved.clone());
        assert_eq!(ExpertRouting::from_recorded(&found.router_indices, 4).expect("recorded"), moved);
        after.push(model.forward(next().cache(plain.cache), &kwargs).expect("runs").logits);
    }
    assert!(after.iter().all(|other| crate::support::difference(&after[0], other) < 1e-5));
}
