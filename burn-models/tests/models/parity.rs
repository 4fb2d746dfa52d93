use crate::support::{
    Case, TOLERANCE, assert_close, assert_close_data, devices, flat, for_each_decoder, recorded, run,
};
use burn_models::LanguageModelOutput;
use burn_models::llama::{LlamaForCausalLM, LlamaModel};
use burn_models::mixtral::MixtralModel;
use burn_models::models::{BaseModel, CausalLM};
use burn_models::qwen2_moe::Qwen2MoeModel;
use patching_core::prelude::*;

/// Every key of `outputs.safetensors`, the recorded positions, and the order of the tuple.
fn check(case: &Case, output: &impl LanguageModelOutput, tuple: &str, on: &str) {
    let found = output.as_tuple();
    let values = flat(&found);
    for (key, expected) in &case.expected("outputs.safetensors") {
        let name = format!("{} on {on}: {key}", case.name);
        let value = values.get(key).unwrap_or_else(|| panic!("{name} is missing"));
        assert_close_data(&name, value, expected, TOLERANCE);
    }
    let keys = recorded(&found);
    for key in case.meta["entries"].as_object().expect("an object").keys() {
        assert_eq!(keys.get(key.as_str()).cloned(), case.entries(key), "{} on {on}: {key}", case.name);
    }
    assert_eq!(keys.len(), case.meta["entries"].as_object().expect("an object").len(), "{}: nothing else", case.name);
    let names: Vec<&str> = found.names().collect();
    assert_eq!(names, case.strings(tuple), "{} on {on}", case.name);
}

#[test]
fn every_recorded_value_is_the_reference_s() {
    for (on, device) in devices() {
        for_each_decoder!(case, Model => {
            let mut model: Model = case.load(&device);
            for attention in ["sdpa", "eager"] {
                model.set_attn_implementation(attention).expect("built in");
                check(&case, &run(&case, &model, &device), "tuple_order", on);
                let kwargs = case.kwargs().use_cache(true);
                let output = model.forward_causal(case.inputs(&device), &kwargs).expect("runs with a cache");
                let order = if case.meta["tuple_order_with_cache"].is_null() { continue } else { "tuple_order_with_cache" };
                check(&case, &output, order, on);
            }
        });
    }
}

#[test]
fn without_recording_logits_are_the_reference_s() {
    for (on, device) in devices() {
        for_each_decoder!(case, Model => {
            let model: Model = case.load(&device);
            let kwargs = ForwardKwargs::new().use_cache(false);
            let output = model.forward_causal(case.inputs(&device), &kwargs).expect("runs");
            let expected = &case.expected("outputs.safetensors")["logits"];
            assert_close(&format!("{} on {on}", case.name), &output.logits, expected, TOLERANCE);
        });
    }
}

#[test]
fn selections_and_config_flags() {
    for (on, device) in devices() {
        for name in
            ["llama-select-ends", "llama-select-one", "llama-untied-last", "llama-attn-only", "llama-config-flags"]
        {
            let case = Case::new(name);
            let model: LlamaForCausalLM = case.load(&device);
            check(&case, &run(&case, &model, &device), "tuple_order", on);
        }
    }
}

#[test]
fn a_base_model_on_its_own() {
    for (on, device) in devices() {
        let case = Case::new("llama-base");
        let model: LlamaModel = case.load(&device);
        let output = model.forward(case.inputs(&device), &case.kwargs()).expect("runs");
        for (key, expected) in &case.expected("outputs.safetensors") {
            let name = format!("{on}: {key}");
            match key.split_once('.') {
                None => assert_close(&name, &output.last_hidden_state, expected, TOLERANCE),
                Some(("hidden_states", index)) => {
                    let found = output.hidden_states.get(index.parse().expect("an index")).expect("recorded");
                    assert_close(&name, found, expected, TOLERANCE);
                }
                Some((_, index)) => {
                    let found = output.attentions.get(index.parse().expect("an index")).expect("recorded");
                    assert_close(&name, found, expected, TOLERANCE);
                }
            }
        }
        let names: Vec<&str> = output.to_tuple().names().collect();
        assert_eq!(names, case.strings("tuple_order"));
    }
}

/// The base models of those with experts: `router_logits` come before `hidden_states`.
#[test]
fn base_models_with_experts() {
    fn check<M: BaseModel>(name: &'static str) {
        for (on, device) in devices() {
            let case = Case::new(name);
            let model: M = case.load(&device);
            let output = model.forward_base(case.inputs(&device), &case.kwargs()).expect("runs").to_tuple();
            let expected: Vec<String> =
                serde_json::from_value(case.meta["base_model"]["tuple_order"].clone()).expect("a list of strings");
            assert_eq!(output.names().collect::<Vec<_>>(), expected, "{name} on {on}");
            let values = flat(&output);
            let expected = case.expected("outputs.safetensors");
            let expected = expected.iter().filter(|(key, _)| key.contains('.')).collect::<Vec<_>>();
            assert!(expected.iter().any(|(key, _)| key.starts_with("router_logits")));
            for (key, expected) in expected {
                assert_close_data(&format!("{name} on {on}: {key}"), &values[key], expected, TOLERANCE);
            }
        }
    }
    check::<Qwen2MoeModel>("qwen2_moe");
    check::<Qwen2MoeModel>("qwen2_moe-norm");
    check::<MixtralModel>("mixtral");
}

#[test]
fn configs_of_version_4_give_the_same() {
    for (on, device) in devices() {
        for name in ["llama", "llama3-rope"] {
            let case = Case::new(name);
            let model: LlamaForCausalLM = case.load_with(&device, "config.legacy.json");
            check(&case, &run(&case, &model, &device), "tuple_order", on);
        }
    }
}
