//! Models on a device that computes nothing: shapes of a whole forward pass without weights.

use burn::tensor::{DType, Device, Int, Tensor};
use burn_models::TextInputs;
use burn_models::layers::Cache;
use burn_models::mistral::{MistralConfig, MistralForCausalLM};
use burn_models::mixtral::{MixtralConfig, MixtralForCausalLM};
use burn_models::qwen2::{Qwen2Config, Qwen2ForCausalLM};
use patching_core::prelude::*;

/// Runs `body` where operations are only noted down.
fn without_computing(body: impl FnOnce(&Device)) {
    let device = Device::capture();
    device
        .capture_scope(|scope| {
            body(&device);
            scope.complete(Vec::new(), Vec::new())
        })
        .expect("noted down");
}

fn ids(device: &Device, shape: [usize; 2]) -> Tensor<2, Int> {
    Tensor::zeros(shape, (device, DType::I64))
}

#[test]
fn a_large_model_without_its_weights() {
    without_computing(|device| {
        let config = MistralConfig { num_hidden_layers: 4, ..MistralConfig::default() };
        let model = MistralForCausalLM::new(&config, &Init::new(device));
        for attention in ["sdpa", "eager"] {
            let mut model = model.clone();
            model.set_attn_implementation(attention).expect("built in");
            let kwargs = ForwardKwargs::new().output_hidden_states(true).output_attentions([-1]);
            let inputs = TextInputs::new(ids(device, [2, 300])).attention_mask(ids(device, [2, 300]));
            let output = model.forward(inputs, &kwargs).expect("runs");
            assert_eq!(output.logits.dims(), [2, 300, 32_000]);
            assert_eq!(output.attentions.at(3).expect("recorded").dims(), [2, 32, 300, 300]);
            assert_eq!(output.hidden_states.len(), 5);
            let next = TextInputs::new(ids(device, [2, 1])).cache(output.cache);
            let output = model.forward(next, &kwargs).expect("runs");
            assert_eq!(output.attentions.at(-1).expect("recorded").dims(), [2, 32, 1, 301]);
            assert_eq!(output.cache.as_ref().map(Cache::sequence_length), Some(301));
        }
    });
}

#[test]
fn a_tied_head_without_weights() {
    without_computing(|device| {
        let config = Qwen2Config { num_hidden_layers: 1, tie_word_embeddings: true, ..Qwen2Config::default() };
        let model = Qwen2ForCausalLM::new(&config, &Init::new(device));
        let output = model.forward(ids(device, [1, 7]), &ForwardKwargs::new()).expect("runs");
        assert_eq!(output.logits.dims(), [1, 7, 151_936]);
    });
}

/// Whatever the implementation, nothing is read back.
#[test]
fn experts_without_weights() {
    without_computing(|device| {
        let config = MixtralConfig { num_hidden_layers: 2, ..MixtralConfig::default() };
        let model = MixtralForCausalLM::new(&config, &Init::new(device));
        for experts in ["grouped_mm", "eager", "batched_mm"] {
            let mut model = model.clone();
            model.set_experts_implementation(experts).expect("built in");
            let kwargs = ForwardKwargs::new().output_router_logits(true).output("router_indices", [-1]);
            let output = model.forward(ids(device, [2, 30]), &kwargs).expect("runs");
            assert_eq!(output.logits.dims(), [2, 30, 32_000]);
            assert_eq!(output.router_logits.at(-1).expect("recorded").dims(), [60, 8]);
            assert_eq!(output.router_indices.at(1).expect("recorded").dims(), [60, 2]);
            assert_eq!(output.aux_loss.expect("a loss").dims(), [1]);
        }
    });
}
