use crate::support::{Case, TOLERANCE, assert_close, bits, device, devices, difference, tensors};
use burn::tensor::{Device, Distribution, Int, Tensor};
use burn_models::auto::AutoModelForCausalLM;
use burn_models::config::DecoderConfig;
use burn_models::layers::Activation;
use burn_models::layers::experts::{
    Experts, ExpertsImplementation, ExpertsInterface, batched_mm_experts, eager_experts, grouped_mm_experts,
};
use burn_models::layers::moe::load_balancing_loss;
use burn_models::llama::LlamaForCausalLM;
use burn_models::mixtral::{MixtralConfig, MixtralForCausalLM};
use burn_models::models::CausalLM;
use burn_models::qwen2_moe::{Qwen2MoeConfig, Qwen2MoeFeedForward, Qwen2MoeForCausalLM, Qwen2MoeModel};
use burn_models::{LanguageModelOutput, MoeCausalLMOutputWithPast, TextInputs};
use patching_core::prelude::*;
use patching_core::weights::{CheckpointLayout, LoadOptions, PreTrainedModel, PretrainedConfig, SaveOptions};
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

/// Layers with experts and without have the same path, in checkpoints and in recorded values.
#[test]
fn dense_and_sparse_layers_have_the_same_path() {
    let case = Case::new("qwen2_moe");
    let model: Qwen2MoeModel = case.load(&device());
    let slots = patching_core::class::all_slots(&model);
    let of_mlp = |layer: usize| {
        let path = format!("layers.{layer}.mlp");
        slots.iter().find(|slot| slot.path == path).map(|slot| slot.class)
    };
    let classes: Vec<_> = (0..4).map(|layer| of_mlp(layer).expect("a slot")).collect();
    let (sparse, dense) = ("Qwen2MoeSparseMoeBlock", "Qwen2MoeMLP");
    assert_eq!(classes, [sparse, dense, sparse, sparse]);
    assert!(slots.iter().any(|slot| slot.path == "layers.2.mlp.gate"));
    let output = model.forward(case.inputs(&device()), &ForwardKwargs::new().output_router_logits(true));
    let output = output.expect("runs");
    let paths: Vec<String> = output.router_logits.iter().map(|(_, path, _)| path.to_owned()).collect();
    assert_eq!(paths, ["layers.0.mlp.gate", "layers.2.mlp.gate", "layers.3.mlp.gate"]);
}

#[test]
fn which_layers_have_experts() {
    let layers = |config: Qwen2MoeConfig| config.experts().map(|experts| experts.layers).unwrap_or_default();
    let config = || Qwen2MoeConfig { num_hidden_layers: 6, ..Qwen2MoeConfig::default() };
    assert_eq!(layers(config()), [0, 1, 2, 3, 4, 5]);
    assert_eq!(layers(Qwen2MoeConfig { decoder_sparse_step: 2, ..config() }), [1, 3, 5]);
    assert_eq!(layers(Qwen2MoeConfig { decoder_sparse_step: 2, mlp_only_layers: vec![3], ..config() }), [1, 5]);
    assert!(layers(Qwen2MoeConfig { num_experts: 0, ..config() }).is_empty());

    let tiny = Qwen2MoeConfig {
        vocab_size: 11,
        hidden_size: 8,
        intermediate_size: 6,
        num_hidden_layers: 2,
        num_attention_heads: 2,
        num_key_value_heads: Some(2),
        num_experts: 0,
        ..Qwen2MoeConfig::default()
    };
    let model = Qwen2MoeForCausalLM::from_config(&tiny, &device()).expect("all layers are dense");
    assert!(
        model.model.layers.len() == 2 && {
            let slots = patching_core::class::all_slots(&model);
            slots.iter().all(|slot| slot.class != "Qwen2MoeSparseMoeBlock")
        }
    );
    let ids = Tensor::<2, Int>::from_data([[1, 2, 3]], &device());
    assert!(model.forward(ids.clone(), &ForwardKwargs::new()).is_ok());
    let error = model.forward(ids, &ForwardKwargs::new().output_router_logits(true)).expect_err("no routers");
    assert!(error.to_string().contains("router_logits"), "{error}");
    let _: fn(&Qwen2MoeConfig, usize, &Init) -> Qwen2MoeFeedForward = Qwen2MoeFeedForward::new;
}

#[test]
fn configs_that_cannot_be_built_are_refused() {
    let qwen = |config: Qwen2MoeConfig| config.validate().expect_err("refused").to_string();
    let base = Qwen2MoeConfig::default;
    assert!(qwen(Qwen2MoeConfig { num_experts_per_tok: 61, ..base() }).contains("`num_experts_per_tok` is 61"));
    assert!(qwen(Qwen2MoeConfig { num_experts_per_tok: 0, ..base() }).contains("`num_experts_per_tok` is 0"));
    assert!(qwen(Qwen2MoeConfig { decoder_sparse_step: 0, ..base() }).contains("`decoder_sparse_step` is 0"));
    assert!(qwen(Qwen2MoeConfig { moe_intermediate_size: 0, ..base() }).contains("an expert"));
    let many = Qwen2MoeConfig { num_experts: 1 << 17, ..base() };
    assert!(qwen(many).contains("`num_experts` is 131072"));
    let huge = MixtralConfig { num_local_experts: 1 << 16, intermediate_size: 1 << 27, ..MixtralConfig::default() };
    let error = huge.validate().expect_err("refused").to_string();
    assert!(error.contains("the sizes ask for"), "{error}");
    let mixtral = MixtralConfig::from_json("{}").expect("all defaults");
    assert_eq!(mixtral, MixtralConfig::default());
    assert_eq!((mixtral.rope_parameters.rope_theta, mixtral.sliding_window), (1e6, None));
    let null = Qwen2MoeConfig::from_json(r#"{"mlp_only_layers": null}"#).expect("valid");
    assert_eq!(null, Qwen2MoeConfig::default());
    assert!(Qwen2MoeConfig::from_json(r#"{"output_router_logits": "all"}"#).is_err());
}

fn run(model: &Qwen2MoeForCausalLM, case: &Case, kwargs: &ForwardKwargs) -> MoeCausalLMOutputWithPast {
    let inputs = case.inputs(&device());
    let labels = inputs.input_ids.clone().expect("tokens");
    model.forward(inputs.labels(labels), kwargs).expect("runs")
}

#[test]
fn the_loss_that_balances_experts() {
    let case = Case::new("qwen2_moe");
    let mut model: Qwen2MoeForCausalLM = case.load(&device());
    let scalar = |loss: Option<Tensor<1>>| loss.expect("a loss").into_scalar::<f32>();
    let all = ForwardKwargs::new().output_router_logits(true);
    let without = run(&model, &case, &ForwardKwargs::new());
    assert!(without.aux_loss.is_none() && !without.router_logits.is_recorded());
    let with = run(&model, &case, &all);
    let aux_loss = scalar(with.aux_loss.clone());
    let expected = case.expected("outputs.safetensors")["aux_loss"].iter::<f32>().next().expect("a number");
    assert!((aux_loss - expected).abs() < 1e-5);
    let difference = scalar(with.loss) - scalar(without.loss.clone());
    assert!((difference - 0.001 * expected).abs() < 1e-5, "{difference}");
    // only some layers: there is nothing to balance by
    let some = run(&model, &case, &ForwardKwargs::new().output_router_logits([0, -1]));
    assert!(some.aux_loss.is_none() && some.router_logits.len() == 3);
    assert_eq!(scalar(some.loss), scalar(without.loss));
    // the config asks, too
    let mut config = model.config().clone();
    config.general.set_output("router_logits", true);
    model = Qwen2MoeForCausalLM::new(&config, &Init::new(&device()));
    assert!(run(&model, &case, &ForwardKwargs::new()).aux_loss.is_some());
}

#[test]
fn the_loss_counts_the_tokens_of_this_call_only() {
    let device = device();
    let case = Case::new("qwen2_moe-norm");
    let model: Qwen2MoeForCausalLM = case.load(&device);
    let kwargs = ForwardKwargs::new().output_router_logits(true).use_cache(true);
    let ids = case.inputs(&device).input_ids.expect("tokens");
    let [batch, seq] = ids.dims();
    // the second sequence begins with padding
    let mask: Vec<i64> = (0..batch * seq).map(|at| i64::from(!(seq..seq + 3).contains(&at))).collect();
    let mask = Tensor::<1, Int>::from_data(mask.as_slice(), &device).reshape([batch, seq]);
    let first = TextInputs::new(ids.clone().slice_dim(1, 0..seq - 1));
    let first = model.forward(first.attention_mask(mask.clone().slice_dim(1, 0..seq - 1)), &kwargs).expect("runs");
    let balance = |output: &MoeCausalLMOutputWithPast, mask| {
        let logits: Vec<_> = output.router_logits.iter().map(|(_, _, logits)| logits.clone()).collect();
        load_balancing_loss(&logits, 2, mask).expect("logits").into_scalar::<f32>()
    };
    let found = first.aux_loss.clone().expect("a loss").into_scalar::<f32>();
    assert!((found - balance(&first, None)).abs() > 1e-4, "padding does not count");

    let last = TextInputs::new(ids.slice_dim(1, seq - 1..seq)).attention_mask(mask).cache(first.cache);
    let last = model.forward(last, &kwargs).expect("runs");
    assert_eq!(last.router_logits.at(0).expect("recorded").dims(), [2, 4]);
    let found = last.aux_loss.clone().expect("a loss").into_scalar::<f32>();
    assert!((found - balance(&last, None)).abs() < 1e-6, "of what was seen before, nothing counts");
}

#[test]
fn scores_and_indices_are_what_the_logits_say() {
    for name in ["qwen2_moe", "qwen2_moe-norm"] {
        let case = Case::new(name);
        let model: Qwen2MoeForCausalLM = case.load(&device());
        let kwargs = ForwardKwargs::new().output_router_logits(true).output("router_scores", true);
        let output = run(&model, &case, &kwargs.output("router_indices", true));
        for (at, _, logits) in output.router_logits.iter() {
            let logits: Vec<f32> = logits.to_data().iter::<f32>().collect();
            let scores = output.router_scores.get(at).expect("recorded").to_data();
            let indices = output.router_indices.get(at).expect("recorded").to_data();
            assert_eq!((scores.shape().to_vec(), indices.shape().to_vec()), (vec![20, 2], vec![20, 2]));
            let pairs: Vec<(f32, i64)> = scores.iter::<f32>().zip(indices.iter::<i64>()).collect();
            for (row, pairs) in logits.chunks(4).zip(pairs.chunks(2)) {
                let sum: f32 = row.iter().map(|logit| logit.exp()).sum();
                let mut order: Vec<usize> = (0..4).collect();
                order.sort_by(|a, b| row[*b].total_cmp(&row[*a]));
                let chosen = [order[0], order[1]];
                assert_eq!([pairs[0].1 as usize, pairs[1].1 as usize], chosen);
                let of_both = (row[chosen[0]].exp() + row[chosen[1]].exp()) / sum;
                let scale = if name == "qwen2_moe" { 1.0 } else { of_both };
                for (pair, expert) in pairs.iter().zip(chosen) {
                    assert!((pair.0 - row[expert].exp() / sum / scale).abs() < 1e-5);
                }
            }
        }
    }
}

/// Published checkpoints hold the experts one by one; both forms are the same model, and each is saved as it was.
#[test]
fn both_forms_of_a_checkpoint_are_one_model() {
    fn check<M: PreTrainedModel>(name: &'static str) {
        let device = device();
        let case = Case::new(name);
        let published = tensors(&case.folder().join("model.safetensors"));
        let fused = tensors(&case.checkpoint().join("model.safetensors"));
        assert_ne!(published.len(), fused.len(), "the forms differ");
        for (folder, expected) in [(case.folder(), &published), (case.checkpoint(), &fused)] {
            let (model, report) = M::from_pretrained_with(folder, &device, &LoadOptions::new()).expect("loads");
            assert!(report.missing.is_empty() && report.unexpected.is_empty(), "{report}");
            let dir = tempfile::tempdir().expect("a folder");
            model.save_pretrained(dir.path()).expect("saves");
            assert_eq!(&tensors(&dir.path().join("model.safetensors")), expected, "{name}");
            let as_model = SaveOptions::new().layout(CheckpointLayout::Model);
            model.save_pretrained_with(dir.path(), &as_model).expect("saves");
            assert_eq!(tensors(&dir.path().join("model.safetensors")), fused, "{name} as the model has it");
        }
        // one that was never loaded is saved as published
        let model =
            M::from_config(&M::Config::from_pretrained(case.folder()).expect("valid"), &device).expect("constructs");
        let dir = tempfile::tempdir().expect("a folder");
        model.save_pretrained(dir.path()).expect("saves");
        let saved = tensors(&dir.path().join("model.safetensors"));
        assert!(saved.keys().eq(published.keys()), "{name}");
    }
    check::<Qwen2MoeForCausalLM>("qwen2_moe");
    check::<Qwen2MoeForCausalLM>("qwen2_moe-norm");
    check::<Qwen2MoeForCausalLM>("qwen2_moe-gradients");
    check::<MixtralForCausalLM>("mixtral");
}
