use crate::support::{Case, bits, device, devices, difference, for_each_decoder};
use burn::tensor::Tensor;
use burn_models::LanguageModelOutput;
use burn_models::layers::attention::{Attention, AttentionImplementation, AttentionInterface, eager_attention};
use burn_models::layers::eager_mask;
use burn_models::llama::LlamaForCausalLM;
use burn_models::models::CausalLM;
use patching_core::prelude::*;
use patching_core::weights::{LoadOptions, PreTrainedModel};
use std::sync::atomic::{AtomicUsize, Ordering};

fn run<M: CausalLM>(case: &Case, model: &M, kwargs: &ForwardKwargs) -> Tensor<3> {
    model.forward_causal(case.inputs(&device()), kwargs).expect("runs").logits().clone()
}

/// All positions, those of padding too.
#[test]
fn both_implementations_agree() {
    for (on, device) in devices() {
        for_each_decoder!(case, Model => {
            let mut model: Model = case.load(&device);
            let mut run = |name: &str, kwargs: &ForwardKwargs| {
                model.set_attn_implementation(name).expect("built in");
                model.forward_causal(case.inputs(&device), kwargs).expect("runs")
            };
            let plain = ForwardKwargs::new().output_hidden_states(true);
            let weights = plain.clone().output_attentions([-1]);
            let (fused, formula) = (run("sdpa", &plain), run("eager", &plain));
            let (mixed, all) = (run("sdpa", &weights), run("eager", &weights));
            for other in [&formula, &mixed, &all] {
                let far = difference(&fused.logits, &other.logits);
                assert!(far < 1e-5, "{} on {on}: {far}", case.name);
                for (position, _, state) in fused.hidden_states.iter() {
                    let far = difference(state, other.hidden_states.get(position).expect("recorded"));
                    assert!(far < 1e-5, "{} on {on}, hidden state {position}: {far}", case.name);
                }
            }
            // The formula is the same whether or not its weights are kept.
            assert_eq!(bits(&formula.logits), bits(&all.logits), "{} on {on}", case.name);
        });
    }
}

#[test]
fn recording_changes_no_bit() {
    for (on, device) in devices() {
        for_each_decoder!(case, Model => {
            let model: Model = case.load(&device);
            let run = |kwargs: ForwardKwargs| {
                model.forward_causal(case.inputs(&device), &kwargs).expect("runs").logits
            };
            let plain = bits(&run(ForwardKwargs::new()));
            for kwargs in [
                ForwardKwargs::new().output_hidden_states(true),
                ForwardKwargs::new().output_hidden_states([1]).use_cache(false),
            ] {
                assert_eq!(plain, bits(&run(kwargs)), "{} on {on}", case.name);
            }
        });
    }
}

#[test]
fn a_registered_implementation_is_used_only_where_it_is_named() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    static WANTED: AtomicUsize = AtomicUsize::new(0);
    let counting = |inputs: Attention| {
        CALLS.fetch_add(1, Ordering::SeqCst);
        WANTED.fetch_add(usize::from(inputs.weights_wanted), Ordering::SeqCst);
        eager_attention(inputs)
    };
    AttentionInterface::register("counting", AttentionImplementation::new(counting, eager_mask), false)
        .expect("a new name");

    let case = Case::new("llama");
    let options = LoadOptions::new().attn_implementation("counting");
    let (model, _) = LlamaForCausalLM::from_pretrained_with(case.folder(), &device(), &options).expect("loads");
    assert_eq!(model.config().general.attn_implementation.as_deref(), Some("counting"));
    let plain: LlamaForCausalLM = case.load(&device());
    let kwargs = ForwardKwargs::new().output_attentions([1]);
    let expected = run(&case, &plain, &kwargs);
    assert_eq!(CALLS.load(Ordering::SeqCst), 0);
    let found = run(&case, &model, &kwargs);
    assert!(difference(&expected, &found) < 1e-5);
    assert_eq!((CALLS.load(Ordering::SeqCst), WANTED.load(Ordering::SeqCst)), (3, 1));

    let saved = serde_json::to_value(model.config()).expect("JSON");
    assert!(saved.get("attn_implementation").is_none());
}

#[test]
fn an_unknown_implementation_is_refused_everywhere() {
    let case = Case::new("llama");
    let options = LoadOptions::new().attn_implementation("flash");
    let error = LlamaForCausalLM::from_pretrained_with(case.folder(), &device(), &options).expect_err("at load");
    assert!(error.to_string().contains("unknown attn_implementation `flash`"), "{error}");
    assert!(error.to_string().contains("eager, sdpa"), "{error}");

    let mut model: LlamaForCausalLM = case.load(&device());
    assert!(model.set_attn_implementation("flash").is_err());

    let mut config = model.config().clone();
    config.set_attn_implementation("flash");
    let model = LlamaForCausalLM::new(&config, &Init::new(&device()));
    let error = model.forward(case.inputs(&device()), &ForwardKwargs::new()).expect_err("at the call");
    assert!(error.to_string().contains("unknown attn_implementation `flash`"), "{error}");
}

/// A function that keeps its weights to itself makes a request for them an error, not an empty list.
#[test]
fn weights_that_are_not_given_are_an_error() {
    let silent = |inputs: Attention| (eager_attention(inputs).0, None);
    AttentionInterface::register("silent", AttentionImplementation::new(silent, eager_mask), false)
        .expect("a new name");
    let case = Case::new("llama");
    let mut model: LlamaForCausalLM = case.load(&device());
    model.set_attn_implementation("silent").expect("registered");
    let error = model.forward(case.inputs(&device()), &ForwardKwargs::new().output_attentions(true));
    let error = error.expect_err("no weights").to_string();
    assert!(error.contains("model.layers.0.self_attn") || error.contains("layers.0.self_attn"), "{error}");
}
