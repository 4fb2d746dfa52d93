//! Models with mixtures of experts: their layers, losses and checkpoints.

use crate::support::{Case, bits, device, devices, tensors};
use burn::module::Module;
use burn::tensor::{Int, Tensor};
use burn_models::config::DecoderConfig;
use burn_models::layers::LayerContext;
use burn_models::layers::moe::load_balancing_loss;
use burn_models::mixtral::{MixtralConfig, MixtralForCausalLM};
use burn_models::qwen2_moe::{
    Qwen2MoeConfig, Qwen2MoeFeedForward, Qwen2MoeForCausalLM, Qwen2MoeMLP, Qwen2MoeModel, Qwen2MoeSparseMoeBlock,
};
use burn_models::{MoeCausalLMOutputWithPast, TextInputs};
use patching_core::patch::PatchSet;
use patching_core::prelude::*;
use patching_core::weights::{CheckpointLayout, LoadOptions, PreTrainedModel, PretrainedConfig, SaveOptions};

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
    assert!(qwen(Qwen2MoeConfig { moe_intermediate_size: 0, ..base() }).contains("`moe_intermediate_size` is 0"));
    let many = Qwen2MoeConfig { num_experts: 1 << 17, ..base() };
    assert!(qwen(many).contains("`num_experts` is 131072"));
    let huge = MixtralConfig { num_local_experts: 1 << 16, intermediate_size: 1 << 27, ..MixtralConfig::default() };
    let error = huge.validate().expect_err("refused").to_string();
    assert!(error.contains("the sizes ask for"), "{error}");
    let mixtral = MixtralConfig::from_json("{}").expect("all defaults");
    assert_eq!(mixtral, MixtralConfig::default());
    assert_eq!((mixtral.rope_parameters.rope_theta, mixtral.sliding_window), (1e6, None));
    let linear = r#"{"rope_parameters": {"rope_type": "linear", "factor": 2.0}}"#;
    assert_eq!(MixtralConfig::from_json(linear).expect("valid").rope_parameters.rope_theta, 1e6);
    assert_eq!(Qwen2MoeConfig::from_json(linear).expect("valid").rope_parameters.rope_theta, 1e4);
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

/// Whatever is recorded of routers, no bit changes.
#[test]
fn recording_routers_changes_no_bit() {
    for (on, device) in devices() {
        for name in ["qwen2_moe", "qwen2_moe-gradients"] {
            let case = Case::new(name);
            let model: Qwen2MoeForCausalLM = case.load(&device);
            let run = |kwargs: ForwardKwargs| model.forward(case.inputs(&device), &kwargs).expect("runs").logits;
            let plain = bits(&run(ForwardKwargs::new()));
            for key in ["router_logits", "router_scores", "router_indices"] {
                for kwargs in [ForwardKwargs::new().output(key, true), ForwardKwargs::new().output(key, [-1])] {
                    assert_eq!(bits(&run(kwargs)), plain, "{name} on {on}: {key}");
                }
            }
        }
    }
}

/// Gives what it is given.
#[derive(Module, Debug)]
struct Through {}

#[replaces(Qwen2MoeSparseMoeBlock)]
impl Through {
    fn new(_config: &Qwen2MoeConfig, _layer_idx: usize, _init: &Init) -> Self {
        Self {}
    }

    fn forward(&self, hidden_states: Tensor<3>, _context: &mut LayerContext) -> Tensor<3> {
        hidden_states
    }
}

/// Adds nothing.
#[derive(Module, Debug)]
struct Nothing {}

#[replaces(Qwen2MoeMLP)]
impl Nothing {
    fn new(_config: &Qwen2MoeConfig, _intermediate_size: usize, _init: &Init) -> Self {
        Self {}
    }

    fn forward(&self, hidden_states: Tensor<3>) -> Tensor<3> {
        hidden_states.zeros_like()
    }
}

/// What follows attention can be replaced in layers with experts and in those without.
#[test]
fn both_kinds_of_layers_can_be_replaced() {
    let device = device();
    let case = Case::new("qwen2_moe");
    let config = case.load::<Qwen2MoeModel>(&device).config().clone();
    let model = |key: &str, by| {
        let patches = PatchSet::new([(key, by)]).expect("valid");
        Qwen2MoeModel::new(&config, &patches.init(&device))
    };
    let places = |model: &Qwen2MoeModel, what: &str| -> Vec<String> {
        let slots = patching_core::class::all_slots(model);
        slots.into_iter().filter(|slot| slot.implementation.ends_with(what)).map(|slot| slot.path).collect()
    };
    let sparse = model("^Qwen2MoeSparse", class::<Through>());
    assert_eq!(places(&sparse, "Through"), ["layers.0.mlp", "layers.2.mlp", "layers.3.mlp"]);
    assert!(sparse.forward(case.inputs(&device), &ForwardKwargs::new()).is_ok());
    let error = sparse.forward(case.inputs(&device), &ForwardKwargs::new().output_router_logits(true));
    assert!(error.is_err(), "there is no router left");
    let dense = model("Qwen2MoeMLP", class::<Nothing>());
    let shared = "mlp.shared_expert";
    let expected = [format!("layers.0.{shared}"), "layers.1.mlp".to_owned()];
    assert_eq!(places(&dense, "Nothing")[..2], expected);
    let output = dense.forward(case.inputs(&device), &ForwardKwargs::new().output_router_logits(true));
    assert_eq!(output.expect("runs").router_logits.len(), 3);
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
