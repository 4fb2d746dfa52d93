use crate::support::{Case, TOLERANCE, assert_close, bits, device, devices, difference};
use burn::tensor::{Device, Distribution, Int, Tensor};
use burn_models::LanguageModelOutput;
use burn_models::auto::AutoModelForCausalLM;
use burn_models::config::DecoderConfig;
use burn_models::layers::Activation;
use burn_models::layers::experts::{
    Experts, ExpertsImplementation, ExpertsInterface, batched_mm_experts, eager_experts, grouped_mm_experts,
};
use burn_models::llama::LlamaForCausalLM;
use burn_models::mixtral::MixtralForCausalLM;
use burn_models::models::CausalLM;
use burn_models::qwen2_moe::{Qwen2MoeConfig, Qwen2MoeForCausalLM};
use patching_core::prelude::*;
use patching_core::weights::{LoadOptions, PreTrainedModel, PretrainedConfig};
use std::sync::atomic::{AtomicUsize, Ordering};

const NAMES: [&str; 3] = ["eager", "grouped_mm", "batched_mm"];

fn random(shape: [usize; 2], device: &Device) -> Tensor<2> {
    Tensor::random(shape, Distribution::Normal(0.0, 1.0), device)
}

/// Experts with random weights, and a choice for each token; `experts` stands for none.
fn inputs(chosen: &[i64], top_k: usize, experts: usize, [hidden, size]: [usize; 2], device: &Device) -> Experts {
    let tokens = chosen.len() / top_k;
    Experts {
        hidden_states: random([tokens, hidden], device),
        top_k_index: Tensor::<1, Int>::from_data(chosen, device).reshape([tokens, top_k]),
        top_k_weights: random([tokens, top_k], device),
        gate_up_proj: random([experts * 2 * size, hidden], device).reshape([experts, 2 * size, hidden]) * 0.3,
        down_proj: random([experts * hidden, size], device).reshape([experts, hidden, size]) * 0.3,
        activation: Activation::Silu,
    }
}

/// By the definition, on the host.
fn naive(inputs: &Experts) -> Vec<f32> {
    let read = |data: burn::tensor::TensorData| data.iter::<f32>().collect::<Vec<_>>();
    let ([tokens, hidden], [_, top_k]) = (inputs.hidden_states.dims(), inputs.top_k_index.dims());
    let [experts, width, _] = inputs.gate_up_proj.dims();
    let size = width / 2;
    let (x, weights) = (read(inputs.hidden_states.to_data()), read(inputs.top_k_weights.to_data()));
    let (gate_up, down) = (read(inputs.gate_up_proj.to_data()), read(inputs.down_proj.to_data()));
    let chosen: Vec<i64> = inputs.top_k_index.to_data().iter::<i64>().collect();
    let mut output = vec![0.0; tokens * hidden];
    for (pair, expert) in chosen.iter().enumerate().filter(|(_, expert)| (0..experts as i64).contains(expert)) {
        let (token, expert) = (pair / top_k, *expert as usize);
        let row = &x[token * hidden..(token + 1) * hidden];
        let dot = |weight: &[f32], row: &[f32]| weight.iter().zip(row).map(|(a, b)| a * b).sum::<f32>();
        let first = |at: usize| dot(&gate_up[(expert * width + at) * hidden..][..hidden], row);
        let inner: Vec<f32> = (0..size)
            .map(|at| (first(at), first(size + at)))
            .map(|(gate, up)| gate / (1.0 + (-gate).exp()) * up)
            .collect();
        for at in 0..hidden {
            let value = dot(&down[(expert * hidden + at) * size..][..size], &inner);
            output[token * hidden + at] += weights[pair] * value;
        }
    }
    output
}

#[test]
fn built_in_implementations_are_the_definition() {
    for (on, device) in devices() {
        // few and many tokens, experts without tokens, one that there is not, all to the same, wide ones
        let spread = |tokens: i64, top_k: i64, experts: i64| -> Vec<i64> {
            (0..tokens * top_k).map(|pair| (pair * 7 + pair / top_k) % experts).collect()
        };
        let cases: [(Vec<i64>, usize, usize, [usize; 2]); 7] = [
            (vec![1, 0], 2, 3, [8, 6]),
            (spread(20, 2, 5), 2, 5, [8, 6]),
            (spread(70, 3, 40), 3, 40, [12, 5]),
            (vec![4, 0, 1, 4, 4, 4], 2, 4, [8, 6]),
            (vec![-1, 0, 1, 3], 2, 3, [8, 6]),
            (vec![2; 9], 1, 3, [8, 6]),
            (spread(300, 2, 4), 2, 4, [96, 130]),
        ];
        for (chosen, top_k, experts, sizes) in cases {
            let inputs = inputs(&chosen, top_k, experts, sizes, &device);
            let expected = naive(&inputs);
            let functions: [fn(Experts) -> Tensor<2>; 3] = [eager_experts, grouped_mm_experts, batched_mm_experts];
            for (name, function) in NAMES.iter().zip(functions) {
                let found = function(inputs.clone());
                assert_eq!(found.dims(), inputs.hidden_states.dims());
                let largest = expected.iter().map(|value| value.abs()).fold(1.0, f32::max);
                for (found, expected) in found.to_data().iter::<f32>().zip(&expected) {
                    let far = (found - expected).abs() / largest;
                    assert!(far < 1e-5, "{name} on {on}, {} pairs: {found} and {expected}", chosen.len());
                }
            }
        }
    }
}

#[test]
fn every_implementation_gives_the_reference_s_logits() {
    fn check<M: CausalLM + PreTrainedModel<Config: DecoderConfig>>(name: &'static str) {
        for (on, device) in devices() {
            let case = Case::new(name);
            let expected = &case.expected("outputs.safetensors")["logits"];
            let mut all: Vec<Tensor<3>> = Vec::new();
            for implementation in NAMES {
                let options = LoadOptions::new().experts_implementation(implementation);
                let (model, _) = M::from_pretrained_with(case.checkpoint(), &device, &options).expect("loads");
                let output = model.forward_causal(case.inputs(&device), &ForwardKwargs::new()).expect("runs");
                assert_close(&format!("{name} on {on}, {implementation}"), output.logits(), expected, TOLERANCE);
                all.push(output.logits().clone());
            }
            assert!(all.iter().all(|other| difference(&all[0], other) < 1e-5), "{name} on {on}");
        }
    }
    check::<Qwen2MoeForCausalLM>("qwen2_moe");
    check::<Qwen2MoeForCausalLM>("qwen2_moe-norm");
    check::<MixtralForCausalLM>("mixtral");
}

#[test]
fn a_registered_implementation_is_used_only_where_it_is_named() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let counting = |inputs: Experts| {
        CALLS.fetch_add(1, Ordering::SeqCst);
        eager_experts(inputs)
    };
    ExpertsInterface::register("counting", ExpertsImplementation::new(counting), false).expect("a new name");
    let case = Case::new("qwen2_moe");
    let options = LoadOptions::new().experts_implementation("counting");
    let (mut model, _) =
        Qwen2MoeForCausalLM::from_pretrained_with(case.checkpoint(), &device(), &options).expect("loads");
    assert_eq!(model.config().experts_implementation(), Some("counting"));
    let run = |model: &Qwen2MoeForCausalLM| {
        model.forward(case.inputs(&device()), &ForwardKwargs::new()).expect("runs").logits
    };
    let plain: Qwen2MoeForCausalLM = case.load(&device());
    let expected = run(&plain);
    assert_eq!(CALLS.load(Ordering::SeqCst), 0);
    assert!(difference(&expected, &run(&model)) < 1e-5);
    // three of the four layers have experts
    assert_eq!(CALLS.load(Ordering::SeqCst), 3);
    assert!(serde_json::to_value(model.config()).expect("JSON").get("experts_implementation").is_none());
    model.set_experts_implementation("grouped_mm").expect("built in");
    assert_eq!(bits(&run(&model)), bits(&expected));
    assert_eq!(CALLS.load(Ordering::SeqCst), 3);
}

#[test]
fn a_wrong_implementation_is_refused_everywhere() {
    let device = device();
    let case = Case::new("qwen2_moe");
    let unknown = "unknown experts_implementation `group_mm`, did you mean `grouped_mm`?";
    let options = LoadOptions::new().experts_implementation("group_mm");
    let error = Qwen2MoeForCausalLM::from_pretrained_with(case.checkpoint(), &device, &options).expect_err("at load");
    assert!(error.to_string().contains(unknown), "{error}");
    let mut model: Qwen2MoeForCausalLM = case.load(&device);
    let error = model.set_experts_implementation("group_mm").expect_err("later").to_string();
    assert!(error.contains(unknown), "{error}");
    let mut config = model.config().clone();
    config.general.experts_implementation = Some("group_mm".to_owned());
    let error = Qwen2MoeForCausalLM::from_config(&config, &device).expect_err("at construction").to_string();
    assert!(error.contains(unknown), "{error}");
    let model = Qwen2MoeForCausalLM::new(&config, &Init::new(&device));
    let error = model.forward(case.inputs(&device), &ForwardKwargs::new()).expect_err("at the call").to_string();
    assert!(error.contains(unknown), "{error}");

    // no layer of a Llama has experts, nor of a Qwen2-MoE that has none
    let none = "no layer of this `llama` model has experts";
    let llama = Case::new("llama");
    let options = LoadOptions::new().experts_implementation("grouped_mm");
    let error = LlamaForCausalLM::from_pretrained_with(llama.folder(), &device, &options).expect_err("no experts");
    assert!(error.to_string().contains(none), "{error}");
    let mut model = AutoModelForCausalLM::from_pretrained(llama.folder(), &device).expect("loads");
    let error = model.set_experts_implementation("eager").expect_err("no experts").to_string();
    assert!(error.contains(none), "{error}");
    let config = Qwen2MoeConfig { num_experts: 0, ..config };
    assert!(Qwen2MoeForCausalLM::from_config(&config, &device).is_err());
}
