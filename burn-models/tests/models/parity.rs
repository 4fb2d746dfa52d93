use crate::support::{Case, TOLERANCE, assert_close, devices, for_each_decoder, run};
use burn_models::CausalLMOutputWithPast;
use burn_models::llama::{LlamaForCausalLM, LlamaModel};
use burn_models::models::CausalLM;
use patching_core::prelude::*;

/// Every key of `outputs.safetensors`, the recorded positions, and the order of the tuple.
fn check(case: &Case, output: &CausalLMOutputWithPast, tuple: &str, on: &str) {
    let expected = case.expected("outputs.safetensors");
    for (key, expected) in &expected {
        let name = format!("{} on {on}: {key}", case.name);
        match key.split_once('.') {
            None if key == "loss" => {
                let loss = output.loss.as_ref().unwrap_or_else(|| panic!("{name} is missing"));
                assert_close(&name, loss, expected, TOLERANCE);
            }
            None => assert_close(&name, &output.logits, expected, TOLERANCE),
            Some(("hidden_states", index)) => {
                let index = index.parse().expect("an index");
                let found = output.hidden_states.get(index).unwrap_or_else(|| panic!("{name} is missing"));
                assert_close(&name, found, expected, TOLERANCE);
            }
            Some((_, index)) => {
                let index = index.parse().expect("an index");
                let found = output.attentions.get(index).unwrap_or_else(|| panic!("{name} is missing"));
                assert_close(&name, found, expected, TOLERANCE);
            }
        }
    }
    let hidden: Vec<usize> = output.hidden_states.iter().map(|(position, ..)| position).collect();
    let attentions: Vec<usize> = output.attentions.iter().map(|(position, ..)| position).collect();
    let found = [
        ("hidden_states", output.hidden_states.is_recorded(), output.hidden_states.len(), hidden),
        ("attentions", output.attentions.is_recorded(), output.attentions.len(), attentions),
    ];
    for (key, is_recorded, length, present) in found {
        let found = is_recorded.then_some((length, present));
        assert_eq!(found, case.entries(key), "{} on {on}: {key}", case.name);
    }
    let names: Vec<&str> = output.to_tuple().names().collect();
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
