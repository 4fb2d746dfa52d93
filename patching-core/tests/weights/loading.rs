//! What a load puts into a model, and what it says of it.

use std::fs;
use std::sync::{Arc, Mutex};

use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{DType, Device, FloatDType, Tensor};
use patching_core::class::Init;
use patching_core::weights::{
    CastReason, Checkpoint, ConfigError, ConfigHead, ConfigProblem, LoadError, LoadOptions, PreTrainedModel,
    PretrainedConfig, ReadError, ReadMode,
};

use crate::support::{ToyConfig, ToyForCausalLM, ToyModel, devices, file_of, fixture, ndarray, values};

#[test]
fn all_devices_and_modes_give_the_same_values() {
    let expected = values(&ToyForCausalLM::from_pretrained(fixture("llama"), &Device::flex()).expect("loads"));
    assert_eq!(expected.len(), 2 + 1 + 3 * 9);
    for (name, device) in devices() {
        for mode in [ReadMode::Map, ReadMode::Read] {
            for fixture_name in ["llama", "llama-sharded"] {
                let options = LoadOptions::new().read_mode(mode);
                let loaded = ToyForCausalLM::from_pretrained_with(fixture(fixture_name), &device, &options);
                assert_eq!(values(&loaded.expect("loads").0), expected, "{name} {mode:?} {fixture_name}");
            }
        }
    }
}

#[test]
fn a_linear_weight_is_transposed() {
    let model = ToyForCausalLM::from_pretrained(fixture("llama"), &Device::flex()).expect("loads");
    let stored = Checkpoint::open(fixture("llama"), ReadMode::Read).expect("opens");
    let stored = Tensor::<2>::from_data(stored.read("lm_head.weight").expect("reads"), &Device::flex());
    assert_eq!(model.lm_head.weight.dims(), [32, 99]);
    assert_eq!(model.lm_head.weight.val().into_data(), stored.transpose().into_data());
}

#[test]
fn a_head_loads_into_its_base_model_and_says_what_was_left() {
    let options = LoadOptions::new();
    let (base, report) = ToyModel::from_pretrained_with(fixture("llama"), &Device::flex(), &options).expect("loads");
    assert_eq!(report.unexpected, ["lm_head.weight"]);
    assert_eq!(report.missing, []);
    assert_eq!(report.renamed.len(), 29);
    assert!(report.to_string().contains("`model.` taken off"), "{report}");

    let direct = ToyModel::from_pretrained(fixture("llama-base"), &Device::flex()).expect("loads");
    assert_eq!(values(&base), values(&direct));
}

#[test]
fn a_base_checkpoint_loads_into_a_head_only_if_the_head_may_be_missing() {
    let device = Device::flex();
    let error = ToyForCausalLM::from_pretrained(fixture("llama-base"), &device).expect_err("the head is missing");
    let LoadError::Weights(report) = &error else { panic!("{error}") };
    assert_eq!(report.missing.len(), 1);
    assert_eq!(report.missing[0].key, "lm_head.weight");
    assert_eq!(report.missing[0].shape, [99, 32]);
    assert!(error.to_string().contains("missing (1):\n  lm_head.weight: [99, 32]"), "{error}");

    let options = LoadOptions::new().allow_missing(true);
    let (_, report) = ToyForCausalLM::from_pretrained_with(fixture("llama-base"), &device, &options).expect("loads");
    assert_eq!(report.missing.len(), 1);
    assert_eq!(report.loaded, 29);
}

#[test]
fn a_tied_head_needs_no_checkpoint_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    for file in ["config.json", "model.safetensors"] {
        fs::copy(fixture("llama-base").join(file), folder.path().join(file)).expect("copies");
    }
    let config = fs::read_to_string(folder.path().join("config.json")).expect("reads");
    let config = config.replace("\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true");
    fs::write(folder.path().join("config.json"), config).expect("writes");
    let model = ToyForCausalLM::from_pretrained(folder.path(), &Device::flex()).expect("loads");
    let head = model.lm_head.weight.val().transpose().into_data();
    assert_eq!(head, model.model.embed_tokens.weight.val().into_data());
}

#[test]
fn a_prefix_is_only_taken_off_at_a_whole_segment() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = ToyConfig { num_hidden_layers: 0, ..ToyConfig::small() };
    let file = file_of(&[("modelXnorm.weight", &[4], &[1.0; 4]), ("model.embed_tokens.weight", &[7, 4], &[0.5; 28])]);
    fs::write(folder.path().join("model.safetensors"), file).expect("writes");
    let model = ToyModel::new(&config, &Init::new(&Device::flex()));
    let error = model.load_weights(folder.path()).expect_err("`norm.weight` is missing");
    let LoadError::Weights(report) = error else { panic!("{error}") };
    assert_eq!(report.missing.iter().map(|missing| missing.key.as_str()).collect::<Vec<_>>(), ["norm.weight"]);
    assert_eq!(report.unexpected, ["modelXnorm.weight"]);
}

#[test]
fn everything_that_does_not_fit_is_in_one_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = ToyConfig { num_hidden_layers: 0, ..ToyConfig::small() };
    let file = file_of(&[
        ("model.norms.weight", &[4], &[1.0; 4]),
        ("lm_head.weight", &[4, 7], &[0.5; 28]),
        ("model.embed_tokens.weight", &[7, 3], &[0.5; 21]),
        ("rotary.inv_freq", &[2], &[0.5; 2]),
    ]);
    fs::write(folder.path().join("model.safetensors"), file).expect("writes");
    let model = || ToyForCausalLM::new(&config, &Init::new(&Device::flex()));

    let error = model().load_weights(folder.path()).expect_err("nothing fits");
    assert_eq!(
        error.to_string(),
        "the checkpoint does not fit the model\n\
         loaded 0 parameters (0 bytes)\n\
         missing (1):\n  model.norm.weight: [4]\n  \
         for `model.norm.weight` the checkpoint has `model.norms.weight`\n\
         mismatched (2):\n  \
         model.embed_tokens.weight: [7, 3] in the checkpoint, [7, 4] in the model\n  \
         lm_head.weight: [4, 7] in the checkpoint, [7, 4] in the model\n\
         unexpected (2):\n  model.norms.weight\n  rotary.inv_freq"
    );

    let options = LoadOptions::new().allow_missing(true);
    assert!(matches!(model().load_weights_with(folder.path(), &options), Err(LoadError::Weights(_))));
    let options = options.ignore_mismatched(true);
    let (_, report) = model().load_weights_with(folder.path(), &options).expect("all of it is allowed");
    assert_eq!((report.loaded, report.missing.len(), report.mismatched.len()), (0, 1, 2));
}

#[test]
fn dtypes_are_kept_or_converted_and_reported() {
    let flex = Device::flex();
    let load = |name, device: &Device, options: &LoadOptions| {
        ToyForCausalLM::from_pretrained_with(fixture(name), device, options).expect("loads")
    };
    let kept = LoadOptions::new();
    let wide = LoadOptions::new().dtype(FloatDType::F32);

    for (name, dtype) in [("llama-bf16", DType::BF16), ("llama-f16", DType::F16)] {
        let (model, report) = load(name, &flex, &kept);
        assert!(values(&model).values().all(|(found, _)| *found == dtype), "{name}");
        assert_eq!(report.casts, []);

        let exact: Vec<_> = values(&model).into_values().map(|(_, values)| values).collect();
        for (device, options, reason) in
            [(&flex, &wide, CastReason::Requested), (&ndarray(), &kept, CastReason::Unsupported)]
        {
            let (model, report) = load(name, device, options);
            let (dtypes, widened): (Vec<_>, Vec<_>) = values(&model).into_values().unzip();
            assert!(dtypes.iter().all(|found| *found == DType::F32), "{name}");
            assert_eq!(widened, exact, "{name}");
            assert_eq!(report.casts.len(), 30);
            assert!(report.casts.iter().all(|cast| (cast.from, cast.to, cast.reason) == (dtype, DType::F32, reason)));
        }
    }

    let (model, report) = load("llama", &flex, &LoadOptions::new().dtype(FloatDType::BF16));
    assert!(values(&model).values().all(|(found, _)| *found == DType::BF16));
    assert!(report.to_string().contains("converted from f32 to bf16 (as asked for): 30"), "{report}");
}

#[test]
fn tensors_at_odd_places_load() {
    let folder = tempfile::tempdir().expect("a folder");
    // One byte of another tensor first puts every float at an odd place.
    let header = concat!(
        r#"{"odd":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"#,
        r#""norm.weight":{"dtype":"F32","shape":[4],"data_offsets":[1,17]},"#,
        r#""embed_tokens.weight":{"dtype":"F32","shape":[7,4],"data_offsets":[17,129]}}"#
    );
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.push(9);
    let numbers: Vec<f32> = (0..32_u8).map(f32::from).collect();
    file.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    fs::write(folder.path().join("model.safetensors"), file).expect("writes");

    let config = ToyConfig { num_hidden_layers: 0, ..ToyConfig::small() };
    for (name, device) in devices() {
        for mode in [ReadMode::Map, ReadMode::Read] {
            let model = ToyModel::new(&config, &Init::new(&device));
            let options = LoadOptions::new().read_mode(mode);
            let (model, report) = model.load_weights_with(folder.path(), &options).expect("loads");
            assert_eq!(report.unexpected, ["odd"]);
            let values = values(&model);
            assert_eq!(values["norm.gamma"].1, numbers[..4], "{name} {mode:?}");
            assert_eq!(values["embed_tokens.weight"].1, numbers[4..], "{name} {mode:?}");
        }
    }
}

#[test]
fn frozen_stays_frozen_and_trainable_stays_trainable() {
    let device = Device::flex().autodiff();
    let config = ToyConfig::from_pretrained(fixture("llama")).expect("reads");
    let mut model = ToyForCausalLM::new(&config, &Init::new(&device));
    model.model.norm = model.model.norm.no_grad();
    let model = model.load_weights(fixture("llama")).expect("loads");

    assert!(!model.model.norm.gamma.is_require_grad());
    assert!(model.model.embed_tokens.weight.is_require_grad());
    assert!(model.lm_head.weight.is_require_grad());
    assert!(!model.clone().valid().lm_head.weight.is_require_grad());

    let ids = Tensor::from_data([[1, 2, 3]], &device);
    let grads = model.forward(ids).sum().backward();
    assert!(model.lm_head.weight.grad(&grads).is_some());
    assert!(model.model.embed_tokens.weight.grad(&grads).is_some());
    assert!(model.model.norm.gamma.grad(&grads).is_none());
}

#[test]
fn parameters_are_not_initialised_to_be_overwritten() {
    let config = ToyConfig::from_pretrained(fixture("llama")).expect("reads");
    let model = ToyForCausalLM::new(&config, &Init::new(&Device::flex()));
    let copy = model.clone();
    model.load_weights(fixture("llama")).expect("loads");
    // A copy shares the state of a parameter that waits to be initialised.
    assert!(!copy.lm_head.weight.is_initialized());
    assert!(!copy.model.embed_tokens.weight.is_initialized());
}

#[test]
fn progress_counts_every_parameter() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&seen);
    let options = LoadOptions::new().progress(move |progress| record.lock().expect("no panic").push(progress));
    let (_, report) = ToyForCausalLM::from_pretrained_with(fixture("llama"), &Device::flex(), &options).expect("loads");
    let seen = seen.lock().expect("no panic");
    assert_eq!(seen.len(), report.loaded);
    let last = seen.last().expect("some");
    assert_eq!((last.tensors, last.bytes), (last.total_tensors, last.total_bytes));
    assert_eq!(last.bytes, report.bytes);
}

#[test]
fn a_panic_of_the_callback_is_a_panic_and_no_abort() {
    let options = LoadOptions::new().progress(|_| panic!("of the callback"));
    let load = || ToyForCausalLM::from_pretrained_with(fixture("llama"), &Device::flex(), &options).map(|_| ());
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(load)).expect_err("it panics");
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"of the callback"));
}

#[test]
fn the_attention_implementation_is_set_before_construction() {
    let options = LoadOptions::new().attn_implementation("eager");
    let (model, _) = ToyModel::from_pretrained_with(fixture("llama"), &Device::flex(), &options).expect("loads");
    assert_eq!(model.config.attn_implementation(), Some("eager"));
}

#[test]
fn config_errors_name_the_file_and_the_field() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config.json");
    let config = fs::read_to_string(fixture("llama").join("config.json")).expect("reads");
    let error = |text: &str| {
        fs::write(&path, text).expect("writes");
        ToyConfig::from_pretrained(folder.path()).expect_err("wrong").to_string()
    };
    let name = path.display();

    assert_eq!(
        error(&config.replace("\"llama\"", "\"bert\"")),
        format!("`{name}` is not a valid config: model type `bert`, expected `llama`, `mistral`, `qwen2` or `qwen3`")
    );
    let wrong = error(&config.replace("1000.0", "\"high\""));
    assert!(
        wrong.starts_with(&format!("`{name}` is not a valid config: at `rope_parameters.rope_theta`: ")),
        "{wrong}"
    );
    let missing = error(&config.replace("\"vocab_size\"", "\"vocabulary_size\""));
    assert!(missing.contains("missing field `vocab_size`"), "{missing}");
    assert!(error("{").contains("EOF"));
    assert!(error(&format!("{config} {{}}")).contains("trailing characters"));
    let deep = format!("{{\"model_type\": \"llama\", \"x\": {}", "[".repeat(100_000));
    assert!(error(&deep).contains("EOF"));
    let deep = format!("{deep}{}}}", "]".repeat(100_000));
    assert!(error(&deep).contains("recursion limit"));
}

#[test]
fn the_kind_of_model_can_be_told_without_its_config() {
    let head = ConfigHead::from_pretrained(fixture("qwen3")).expect("reads");
    assert_eq!(head.model_type.as_deref(), Some("qwen3"));
    assert_eq!(head.architectures, Some(vec!["Qwen3ForCausalLM".to_owned()]));
}

#[test]
fn a_part_of_a_composite_config_is_found() {
    let config = fs::read_to_string(fixture("llama").join("config.json")).expect("reads");
    let composite = format!(r#"{{"model_type": "toy_composite", "text_config": {config}}}"#);
    assert_eq!(ToyConfig::from_json(&composite).expect("reads").hidden_size, 32);
    let error = ToyConfig::from_json(r#"{"model_type": "toy_composite"}"#).expect_err("no part");
    assert!(matches!(error, ConfigError::Invalid { problem: ConfigProblem::NoPart { .. }, .. }));
}

#[test]
fn a_folder_without_weights_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = Checkpoint::open(folder.path(), ReadMode::Map).expect_err("empty");
    assert!(matches!(error, ReadError::NoWeights { .. }));
    let error = Checkpoint::open(folder.path().join("nowhere"), ReadMode::Map).expect_err("absent");
    assert!(matches!(error, ReadError::Io { action: "open", .. }), "{error}");
}

#[test]
fn a_loaded_layer_can_be_changed_without_touching_the_file() {
    let before = fs::read(fixture("llama").join("model.safetensors")).expect("reads");
    let model = ToyForCausalLM::from_pretrained(fixture("llama"), &Device::flex()).expect("loads");
    let head: Linear = model.lm_head;
    let changed = head.weight.map(|weight| weight * 2.0 + 1.0);
    assert!(changed.is_initialized());
    assert_eq!(fs::read(fixture("llama").join("model.safetensors")).expect("reads"), before);
}
