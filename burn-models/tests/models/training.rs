//! Gradients, on devices that compute them.

use crate::support::{Case, device};
use crate::support::{assert_close_data, tensors};
use burn::module::{ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor, TensorData};
use burn_models::LanguageModelOutput;
use burn_models::llama::LlamaForCausalLM;
use burn_models::mixtral::MixtralForCausalLM;
use burn_models::models::{CausalLM, Decoder, Model};
use burn_models::qwen2_moe::Qwen2MoeForCausalLM;
use burn_models::qwen3::Qwen3ForCausalLM;
use burn_models::routing::ExpertRouting;
use patching_core::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;

fn loss<M: CausalLM>(case: &Case, model: &M, device: &Device) -> Tensor<1> {
    let inputs = case.inputs(device);
    let labels = inputs.input_ids.clone().expect("tokens");
    let output = model.forward_causal(inputs.labels(labels), &ForwardKwargs::new().use_cache(false));
    output.expect("runs").loss().expect("labels were given").clone()
}

/// The gradient of a tied embedding is that of both its uses.
#[test]
fn a_tied_embedding_gets_both_gradients() {
    let device = device().autodiff();
    let case = Case::new("llama-tied");
    let model: LlamaForCausalLM = case.load(&device);
    let gradients = loss(&case, &model, &device).backward();
    let weight = model.model.embed_tokens.weight.val();
    let gradient = weight.grad(&gradients).expect("a parameter");
    // One row that is an input, and one that is only ever an output.
    for row in [93_usize, 1] {
        let nudged = |by: f64| {
            let mut model: LlamaForCausalLM = case.load(&device);
            let moved = weight.clone().detach().inner();
            let value = moved.clone().slice([row..row + 1, 5..6]) + by;
            let moved = moved.slice_assign([row..row + 1, 5..6], value);
            model.model.embed_tokens.weight = Param::from_tensor(Tensor::from_data(moved.into_data(), &device));
            loss(&case, &model, &device).into_scalar::<f32>()
        };
        let step = 1e-2;
        let numeric = (nudged(step) - nudged(-step)) / (2.0 * step as f32);
        let exact: f32 = gradient.clone().slice([row..row + 1, 5..6]).into_scalar();
        assert!((numeric - exact).abs() < 2e-3 + 0.02 * exact.abs(), "row {row}: {numeric} and {exact}");
        assert!(exact != 0.0, "row {row}");
    }
}

#[test]
fn recorded_values_stay_on_the_graph() {
    let device = device().autodiff();
    let case = Case::new("qwen3");
    let model: Qwen3ForCausalLM = case.load(&device);
    for attention in ["sdpa", "eager"] {
        let mut model = model.clone();
        model.set_attn_implementation(attention).expect("built in");
        let kwargs = ForwardKwargs::new().output_hidden_states(true).output_attentions(true);
        let output = model.forward(case.inputs(&device), &kwargs).expect("runs");
        let state = output.hidden_states.at(1).expect("recorded").clone();
        let weights = output.attentions.at(-1).expect("recorded").clone();
        let gradients = (state.sum() + weights.powi_scalar(2).sum()).backward();
        let embedding = model.model.embed_tokens.weight.val().grad(&gradients).expect("a parameter");
        assert!(embedding.abs().sum().into_scalar::<f32>() > 0.0);
    }
}

/// Gradients by the keys that parameters have in a checkpoint, in its layout.
struct ByKey<'a> {
    gradients: &'a Gradients,
    path: Vec<(String, String)>,
    found: BTreeMap<String, TensorData>,
}

impl ModuleVisitor for ByKey<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.push((name.to_owned(), container.to_owned()));
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let names = self.path.iter().filter(|(_, container)| !container.starts_with("Enum:"));
        let key = names.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(".");
        let is_linear = D == 2 && self.path.last().is_some_and(|(_, container)| container == "Struct:Linear");
        if let Some(gradient) = param.val().grad(self.gradients) {
            let gradient = if is_linear { gradient.swap_dims(0, D - 1) } else { gradient };
            self.found.insert(key, gradient.into_data());
        }
    }
}

/// Losses and gradients of mixtures of experts: with the routers' own choice, and with another forced on them.
#[test]
fn gradients_of_experts_are_the_reference_s() {
    fn check<M>(name: &'static str, num_experts: usize)
    where
        M: CausalLM<Output = burn_models::MoeCausalLMOutputWithPast> + Decoder,
    {
        let device = device().autodiff();
        let case = Case::new(name);
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name).join("gradients.safetensors");
        let expected = tensors(&file);
        let forced = &expected["forced"];
        let shape: [usize; 3] = forced.shape().to_vec().try_into().expect("three dimensions");
        let values: Vec<i64> = forced.iter::<i64>().collect();
        let routing = ExpertRouting::from_array(&values, shape, num_experts).expect("valid");
        let mut model: M = case.load(&device);
        for implementation in ["grouped_mm", "eager", "batched_mm"] {
            model.base_mut().set_experts_implementation(implementation).expect("built in");
            for (prefix, routing) in [("", None), ("forced.", Some(routing.clone()))] {
                let output = model.forward_causal(case.inputs(&device).expert_routing(routing), &case.kwargs());
                let output = output.expect("runs");
                let on = |key: &str| format!("{name}, {implementation}: {prefix}{key}");
                let close = |key: &str, found: TensorData| {
                    assert_close_data(&on(key), &found, &expected[&format!("{prefix}{key}")], 1e-4);
                };
                let loss = output.loss.clone().expect("labels were given");
                close("loss", loss.to_data());
                close("aux_loss", output.aux_loss.clone().expect("router logits").to_data());
                close("logits", output.logits.to_data());
                let gradients = loss.backward();
                let mut by_key = ByKey { gradients: &gradients, path: Vec::new(), found: BTreeMap::new() };
                model.visit(&mut by_key);
                let of_prefix = format!("{prefix}gradient.");
                let keys: Vec<&str> = expected.keys().filter_map(|key| key.strip_prefix(of_prefix.as_str())).collect();
                assert!(keys.iter().any(|key| key.ends_with("mlp.gate.weight")));
                for key in keys {
                    let found = by_key.found.remove(key).unwrap_or_else(|| panic!("{} has no gradient", on(key)));
                    let largest = found.iter::<f32>().map(f32::abs).fold(0.0, f32::max);
                    assert!(largest > 0.0, "{}", on(key));
                    close(&format!("gradient.{key}"), found);
                }
            }
        }
    }
    check::<Qwen2MoeForCausalLM>("qwen2_moe-gradients", 6);
    check::<MixtralForCausalLM>("mixtral-gradients", 5);
}
