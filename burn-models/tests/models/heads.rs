use crate::support::{Case, TOLERANCE, assert_close, bits, device, devices};
use burn::tensor::{Int, Tensor};
use burn_models::auto::{AnyModel, AutoModel, AutoModelForCausalLM};
use burn_models::generation::GenerationConfig;
use burn_models::llama::{LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification, LlamaModel};
use burn_models::mistral::MistralForSequenceClassification;
use burn_models::qwen2::Qwen2ForSequenceClassification;
use burn_models::qwen3::{Qwen3ForCausalLM, Qwen3ForSequenceClassification};
use burn_models::{ForwardError, LogitsToKeep, SequenceClassifierOutputWithPast};
use patching_core::prelude::*;
use patching_core::weights::LoadOptions;
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;

fn check(case: &Case, output: &SequenceClassifierOutputWithPast, on: &str) {
    for (key, expected) in &case.expected("outputs.safetensors") {
        let name = format!("{} on {on}: {key}", case.name);
        match key.split_once('.') {
            None if key == "loss" => assert_close(&name, output.loss.as_ref().expect("a loss"), expected, TOLERANCE),
            None => assert_close(&name, &output.logits, expected, TOLERANCE),
            Some(("hidden_states", index)) => {
                let index = index.parse().expect("an index");
                assert_close(&name, output.hidden_states.get(index).expect("recorded"), expected, TOLERANCE);
            }
            Some((_, index)) => {
                let index = index.parse().expect("an index");
                assert_close(&name, output.attentions.get(index).expect("recorded"), expected, TOLERANCE);
            }
        }
    }
    let names: Vec<&str> = output.to_tuple().names().collect();
    assert_eq!(names, case.strings("tuple_order"));
}

macro_rules! classifier {
    ($case:literal, $model:ty) => {
        for (on, device) in devices() {
            let case = Case::new($case);
            let model: $model = case.load(&device);
            let output = model.forward(case.inputs(&device), &case.kwargs()).expect("runs");
            check(&case, &output, on);
        }
    };
}

#[test]
fn classifiers_are_the_reference_s() {
    classifier!("llama-classes", LlamaForSequenceClassification);
    classifier!("qwen2-classes", Qwen2ForSequenceClassification);
    classifier!("qwen3-regression", Qwen3ForSequenceClassification);
    classifier!("mistral-labels", MistralForSequenceClassification);
}

#[test]
fn a_batch_without_a_pad_token_is_an_error() {
    let device = device();
    let mut config = LlamaConfig {
        vocab_size: 11,
        hidden_size: 8,
        intermediate_size: 8,
        num_hidden_layers: 1,
        num_attention_heads: 2,
        ..LlamaConfig::default()
    };
    config.general.set_num_labels(3);
    let model = LlamaForSequenceClassification::new(&config, &Init::new(&device));
    let ids = |batch| Tensor::<2, Int>::ones([batch, 4], &device);
    let output = model.forward(ids(1), &ForwardKwargs::new()).expect("one sequence");
    assert_eq!(output.logits.dims(), [1, 3]);
    let error = model.forward(ids(2), &ForwardKwargs::new()).expect_err("two sequences");
    assert!(matches!(error, ForwardError::NoPadToken { batch: 2 }), "{error}");
}

#[test]
fn logits_to_keep_are_those_positions() {
    let device = device();
    let case = Case::new("llama");
    let model: LlamaForCausalLM = case.load(&device);
    let kwargs = ForwardKwargs::new().use_cache(false);
    let run = |keep: LogitsToKeep| model.forward(case.inputs(&device).logits_to_keep(keep), &kwargs);
    let all = run(LogitsToKeep::All).expect("runs").logits;
    let close = |a: Tensor<3>, b: Tensor<3>| assert_close("kept", &a, &b.to_data(), 1e-5);
    close(run(3.into()).expect("runs").logits, all.clone().slice_dim(1, 7..10));
    close(run(99.into()).expect("runs").logits, all.clone());
    close(run(LogitsToKeep::Last(0)).expect("runs").logits, all.clone());
    let some = Tensor::<1, Int>::from_data([0, 5], &device);
    close(run(some.clone().into()).expect("runs").logits, all.select(1, some));
    let outside = Tensor::<1, Int>::from_data([10], &device);
    assert!(matches!(run(outside.into()), Err(ForwardError::IndexOutOfRange { found: 10, limit: 10, .. })));
}

#[test]
fn labels_that_do_not_fit_are_errors() {
    let device = device();
    let case = Case::new("llama");
    let model: LlamaForCausalLM = case.load(&device);
    let kwargs = ForwardKwargs::new();
    let classes = Tensor::<1, Int>::zeros([2], &device);
    let error = model.forward(case.inputs(&device).labels(classes), &kwargs).expect_err("classes");
    assert_eq!(error.to_string(), "labels are classes of shape [2], expected tokens of shape [batch, seq]");
    let short = Tensor::<2, Int>::zeros([2, 9], &device);
    assert!(matches!(
        model.forward(case.inputs(&device).labels(short), &kwargs),
        Err(ForwardError::Shape { name: "labels", .. })
    ));
    let outside = Tensor::<2, Int>::full([2, 10], 99, &device);
    assert!(matches!(
        model.forward(case.inputs(&device).labels(outside), &kwargs),
        Err(ForwardError::IndexOutOfRange { name: "labels", found: 99, .. })
    ));
}

#[test]
fn a_tied_head_is_one_parameter() {
    let device = device();
    let case = Case::new("llama-tied");
    let model: LlamaForCausalLM = case.load(&device);
    assert!(model.lm_head.is_none());
    let untied: LlamaForCausalLM = Case::new("llama").load(&device);
    assert!(untied.lm_head.is_some());

    let dir = tempfile::tempdir().expect("a folder");
    model.save_pretrained(dir.path()).expect("saved");
    let saved = crate::support::tensors(&dir.path().join("model.safetensors"));
    assert!(!saved.contains_key("lm_head.weight"));
    let again = LlamaForCausalLM::from_pretrained(dir.path(), &device).expect("loads");
    let run = |model: &LlamaForCausalLM| model.forward(case.inputs(&device), &ForwardKwargs::new()).expect("runs");
    assert_eq!(bits(&run(&model).logits), bits(&run(&again).logits));
}

/// A file may hold the tied head as well. Equal, it is the embedding; different, it must not get lost.
#[test]
fn a_stored_head_of_a_tied_model_must_be_the_embedding() {
    let device = device();
    let case = Case::new("llama-tied");
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::copy(case.folder().join("config.json"), dir.path().join("config.json")).expect("copied");
    let bytes = std::fs::read(case.folder().join("model.safetensors")).expect("weights");
    let file = SafeTensors::deserialize(&bytes).expect("valid");
    let embedding = file.tensor("model.embed_tokens.weight").expect("the embedding");
    let mut changed = embedding.data().to_vec();
    changed[0] ^= 1;
    let changed = TensorView::new(embedding.dtype(), embedding.shape().to_vec(), &changed).expect("valid");
    let load = |head: &TensorView<'_>, embedding: bool| {
        let tensors = file.tensors().into_iter().filter(|(key, _)| embedding || !key.ends_with("embed_tokens.weight"));
        let tensors = tensors.chain([("lm_head.weight".to_owned(), head.clone())]);
        let bytes = safetensors::serialize(tensors, None).expect("serialised");
        std::fs::write(dir.path().join("model.safetensors"), bytes).expect("written");
        LlamaForCausalLM::from_pretrained_with(dir.path(), &device, &LoadOptions::new())
    };
    let expected: LlamaForCausalLM = LlamaForCausalLM::from_pretrained(case.folder(), &device).expect("loads");
    let run = |model: &LlamaForCausalLM| model.forward(case.inputs(&device), &ForwardKwargs::new()).expect("runs");
    for (with_embedding, tied) in [(true, "lm_head.weight"), (false, "model.embed_tokens.weight")] {
        let (model, report) = load(&embedding, with_embedding).expect("equal");
        assert!(report.is_exact(), "{report}");
        assert_eq!(report.tied[0].key, tied);
        assert_eq!(bits(&run(&model).logits), bits(&run(&expected).logits));
    }
    let error = load(&changed, true).expect_err("different").to_string();
    assert!(error.contains("`lm_head.weight` differs from `model.embed_tokens.weight`"), "{error}");
    // A model without a head has no use for it.
    assert!(AutoModel::from_pretrained(dir.path(), &device).is_ok());
}

#[test]
fn auto_loading_by_family_and_architecture() {
    let device = device();
    let options = LoadOptions::new();
    for (name, class) in [
        ("llama", "LlamaForCausalLM"),
        ("mistral", "MistralForCausalLM"),
        ("mixtral", "MixtralForCausalLM"),
        ("qwen2", "Qwen2ForCausalLM"),
        ("qwen2_moe", "Qwen2MoeForCausalLM"),
        ("qwen3", "Qwen3ForCausalLM"),
    ] {
        let case = Case::new(name);
        let mut model = AutoModelForCausalLM::from_pretrained(case.checkpoint(), &device).expect("loads");
        assert_eq!(model.class_name(), class);
        let output = model.forward(case.inputs(&device), &case.kwargs()).expect("runs");
        assert_close(name, output.logits(), &case.expected("outputs.safetensors")["logits"], TOLERANCE);
        let config = GenerationConfig::greedy(12);
        let generated = model.generate(case.inputs(&device), &config, &ForwardKwargs::new()).expect("generates");
        let expected = &case.expected("generate.safetensors")["sequences"];
        assert_eq!(crate::support::ids(&generated.sequences), expected.iter::<i64>().collect::<Vec<_>>());
        assert!(model.set_attn_implementation("sdpaa").is_err());

        let base =
            AutoModel::from_pretrained(case.checkpoint(), &device).expect("a base model out of a head's checkpoint");
        let hidden = base.forward(case.inputs(&device), &ForwardKwargs::new()).expect("runs");
        assert_eq!(hidden.last_hidden_state().dims()[2], 32);
        let plan = base.capture_plan(&ForwardKwargs::new().output_attentions([0])).expect("a plan");
        assert!(!format!("{plan:?}").is_empty());
        assert_eq!(base.config_json()["model_type"], name);
    }
    let any = |name| AnyModel::from_pretrained_with(Case::new(name).folder(), &device, &options).expect("loads").0;
    assert!(any("llama-base").get::<LlamaModel>().is_some());
    assert!(any("qwen3").get::<Qwen3ForCausalLM>().is_some());
    assert!(any("mistral-labels").get::<MistralForSequenceClassification>().is_some());
}

#[test]
fn unknown_families_and_architectures_list_the_known() {
    let device = device();
    let dir = tempfile::tempdir().expect("a folder");
    let load = |config: &str| {
        std::fs::write(dir.path().join("config.json"), config).expect("written");
        AnyModel::from_pretrained_with(dir.path(), &device, &LoadOptions::new()).expect_err("refused").to_string()
    };
    let error = load(r#"{"model_type": "lama"}"#);
    assert!(error.contains("unknown model_type `lama`, did you mean `llama`?"), "{error}");
    for known in ["llama", "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3"] {
        assert!(error.contains(&format!(" {known}")), "{error}");
    }
    let error = load(r#"{"model_type": "llama", "architectures": ["LlamaForTokenClassification"]}"#);
    assert!(error.contains("LlamaForSequenceClassification"), "{error}");
    let error = load(r#"{"model_type": "llama", "architectures": ["MistralForCausalLM"]}"#);
    assert!(error.contains("`llama`") && error.contains("`MistralForCausalLM`"), "{error}");
    let error = load("{}");
    assert!(error.contains("neither a `model_type` nor"), "{error}");
    assert!(load("{").contains("not a valid config"));
}
