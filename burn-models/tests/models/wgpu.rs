//! The smallest cases on wgpu; without a graphics card a software Vulkan driver serves.

use crate::families::check_case;
use crate::support::{Case, TOLERANCE, assert_close};
use burn::tensor::{Device, DeviceKind, Int, Tensor};
use burn_models::TextInputs;
use burn_models::qwen2_moe::Qwen2MoeForCausalLM;
use burn_models::routing::ExpertRouting;
use patching_core::prelude::*;

/// The smallest case of each family and each of its parts, and what only some have.
const CASES: &[&str] = &[
    "bert",
    "bert-decoder",
    "clip",
    "clip-text",
    "clip-vision",
    "dinov2-oblong",
    "gpt2",
    "llama-tied",
    "llama3-rope",
    "llava",
    "mistral",
    "mixtral",
    "qwen2",
    "qwen2_moe",
    "qwen3",
    "t5",
    "vit",
    "whisper",
];

#[test]
fn every_recorded_value_is_the_reference_s() {
    let device = Device::wgpu(DeviceKind::DefaultDevice);
    for name in CASES {
        check_case(&Case::new(name), "wgpu", &device);
    }
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
