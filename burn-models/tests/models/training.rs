//! Gradients, on devices that compute them.

use crate::support::{Case, device};
use burn::module::Param;
use burn::tensor::{Device, Tensor};
use burn_models::LanguageModelOutput;
use burn_models::llama::LlamaForCausalLM;
use burn_models::models::CausalLM;
use burn_models::qwen3::Qwen3ForCausalLM;
use patching_core::prelude::*;

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
