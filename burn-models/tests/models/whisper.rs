//! What only Whisper does: how its decoder begins, times, languages, long sounds, and its other heads.

use crate::support::{Case, TOLERANCE, assert_close, device, tensors};
use burn::module::{Module, Param};
use burn::tensor::{DType, Device, FloatDType, Int, Tensor, TensorData};
use burn_models::audio::{WhisperFeatureExtractor, read_wav};
use burn_models::generation::{GenerateError, GenerationConfig};
use burn_models::whisper::{
    WhisperConfig, WhisperDecoder, WhisperEncoder, WhisperForAudioClassification, WhisperForCausalLM,
    WhisperForConditionalGeneration, WhisperModel,
};
use burn_models::{ForwardError, Seq2SeqInputs, SpeechInputs, TextInputs};
use patching_core::prelude::*;
use patching_core::weights::LoadOptions;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What the reference gave, by [`whisper.py`](../fixtures/whisper.py).
fn speech() -> Value {
    let path = Case::new("whisper").folder().join("speech.json");
    serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("JSON")
}

fn config(settings: &Value) -> GenerationConfig {
    serde_json::from_value(settings.clone()).expect("settings")
}

fn model(case: &str) -> WhisperForConditionalGeneration {
    WhisperForConditionalGeneration::from_pretrained(folder(case), &device()).expect("loads")
}

fn folder(case: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(case)
}

fn floats<const D: usize>(data: &TensorData) -> Tensor<D> {
    Tensor::from_data(data.clone(), (&device(), DType::F32))
}

fn ints<const D: usize>(data: &TensorData) -> Tensor<D, Int> {
    Tensor::from_data(data.clone(), (&device(), DType::I64))
}

fn inputs(case: &str) -> BTreeMap<String, TensorData> {
    tensors(&folder(case).join("inputs.safetensors"))
}

fn features(case: &str) -> Tensor<3> {
    floats(&inputs(case)["input_features"])
}

fn rows(tokens: &Tensor<2, Int>) -> Vec<Vec<i64>> {
    let [_, columns] = tokens.dims();
    let all: Vec<i64> = tokens.to_data().iter::<i64>().collect();
    all.chunks(columns).map(<[i64]>::to_vec).collect()
}

#[test]
fn short_sounds_are_written_down_as_in_the_reference() {
    let model = model("whisper");
    let record = speech();
    for (name, case) in record["short"].as_object().expect("an object") {
        let expected: Vec<Vec<i64>> = serde_json::from_value(case["sequences"].clone()).expect("tokens");
        // what the encoder records decides whether it runs before the first step
        for kwargs in [ForwardKwargs::new(), ForwardKwargs::new().output_attentions(true)] {
            let found = model.generate(features("whisper"), &config(&case["settings"]), &kwargs);
            let found = found.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(rows(&found.sequences), expected, "{name}");
            for (step, output) in found.steps.iter().enumerate() {
                let queries = if step == 0 { found.prompt_length } else { 1 };
                assert_eq!(output.cross_attentions.at(-1).expect("recorded").dims(), [2, 2, queries, 12], "{name}");
                assert_eq!(output.encoder_attentions.len(), if step == 0 { 2 } else { 0 }, "{name}");
            }
        }
    }
}

#[test]
fn the_language_is_heard() {
    let model = model("whisper");
    let record = speech();
    let expected: Vec<i64> = serde_json::from_value(record["languages"].clone()).expect("tokens");
    let heard = config(&record["short"]["heard"]["settings"]);
    let source = || Seq2SeqInputs::new(SpeechInputs::new(features("whisper")));
    assert_eq!(model.detect_language(source(), &heard).expect("runs"), expected);
    let states = model.model.encoder.forward(features("whisper"), &ForwardKwargs::new()).expect("runs");
    let states = Seq2SeqInputs::encoded(states.last_hidden_state);
    assert_eq!(model.detect_language(states, &heard).expect("runs"), expected);
    let error = model.detect_language(source(), &GenerationConfig::default()).expect_err("no languages").to_string();
    assert!(error.contains("`lang_to_id`"), "{error}");
}

#[test]
fn long_sounds_are_written_down_part_by_part() {
    let model = model("whisper");
    let [one, other] = [0, 1].map(|row| features("whisper").slice_dim(0, row..row + 1));
    let sound = Tensor::cat(vec![one.clone(), other, one], 2);
    for (name, case) in speech()["long"].as_object().expect("an object") {
        let frames = case["frames"].as_u64().expect("a number") as usize;
        let sound = sound.clone().slice_dim(2, 0..frames);
        let kwargs = ForwardKwargs::new().output("cross_attentions", true);
        let found = model.transcribe(sound, &config(&case["settings"]), &kwargs.output_attentions(true));
        let found = found.unwrap_or_else(|error| panic!("{name}: {error}"));
        let expected = case["segments"].as_array().expect("a list");
        assert_eq!(found.segments.len(), expected.len(), "{name}");
        for (segment, expected) in found.segments.iter().zip(expected) {
            let tokens: Vec<i64> = serde_json::from_value(expected["tokens"].clone()).expect("tokens");
            assert_eq!(segment.tokens, tokens, "{name}");
            let times = [(segment.start, &expected["start"]), (segment.end, &expected["end"])];
            for (found, expected) in times {
                let expected = expected.as_f64().expect("a number");
                assert!((found - expected).abs() < 1e-6, "{name}: {found} and {expected}");
            }
            let window = &found.windows[segment.window];
            assert!(!window.output.steps.is_empty() && window.first_frame < frames, "{name}");
        }
        let all: Vec<i64> = found.segments.iter().flat_map(|segment| segment.tokens.clone()).collect();
        assert_eq!(found.tokens(), all);
    }
}

#[test]
fn a_decoder_continues_a_prompt_of_the_caller() {
    let model = model("whisper");
    let plain = speech()["short"]["plain"]["sequences"].clone();
    let plain: Vec<Vec<i64>> = serde_json::from_value(plain).expect("tokens");
    let prompt: Vec<i64> = plain.iter().flat_map(|row| row[..4].to_vec()).collect();
    let prompt = Tensor::<1, Int>::from_data(prompt.as_slice(), (&device(), DType::I64)).reshape([2, 4]);
    let inputs = Seq2SeqInputs::new(SpeechInputs::new(features("whisper"))).decoder_input_ids(prompt);
    // where languages are known, a prompt is taken as it is
    let config = GenerationConfig {
        extra: config(&speech()["short"]["german"]["settings"]).extra,
        ..GenerationConfig::greedy(5)
    };
    let found = model.generate(inputs, &config, &ForwardKwargs::new()).expect("runs");
    assert_eq!((rows(&found.sequences), found.prompt_length), (plain, 4));
}

#[test]
fn lengths_are_bounded_by_positions() {
    let model = model("whisper");
    let generate = |settings: Value| {
        let found = model.generate(features("whisper"), &config(&settings), &ForwardKwargs::new());
        found.map(|found| found.sequences.dims()[1]).map_err(|error| error.to_string())
    };
    assert_eq!(generate(json!({"max_new_tokens": 23})), Ok(24));
    let error = "a prompt of 1 tokens and 24 more, expected at most 24 together (`max_target_positions`)";
    assert_eq!(generate(json!({"max_new_tokens": 24})), Err(error.to_owned()));
    // the prompt does not count
    assert_eq!(generate(json!({"max_length": 5})), Ok(6));
    assert_eq!(generate(json!({"max_length": 500})), Ok(24));
    assert_eq!(generate(json!({})), Ok(21));
}

#[test]
fn settings_that_do_not_fit_are_errors() {
    let model = model("whisper");
    let error = |settings: Value| {
        let found = model.generate(features("whisper"), &config(&settings), &ForwardKwargs::new());
        found.map(drop).expect_err("does not fit").to_string()
    };
    let tables = speech()["short"]["heard"]["settings"].clone();
    let with = |name: &str, value: Value| {
        let mut settings = tables.clone();
        settings[name] = value;
        settings
    };
    for (settings, expected) in [
        (json!({"is_multilingual": false, "language": "en"}), "`language` cannot be chosen"),
        (json!({"is_multilingual": false, "task": "translate"}), "`task` cannot be chosen"),
        (json!({"language": "en"}), "`language` needs `lang_to_id`"),
        (json!({"task": "translate"}), "`task` needs `task_to_id`"),
        (json!({"return_timestamps": true}), "`return_timestamps` needs `no_timestamps_token_id`"),
        (json!({"no_speech_threshold": 0.6}), "`no_speech_threshold` is not supported"),
        (json!({"condition_on_prev_tokens": true}), "`condition_on_prev_tokens` is not supported"),
        (json!({"num_beams": 5}), "`num_beams` is 5"),
        (with("language", json!("germann")), "did you mean `german`?"),
        (with("language", json!(["en"])), "1 languages for a batch of 2"),
        (with("task", json!("translated")), "did you mean `translate`?"),
        (with("language", json!(7)), "`language` in the generation config"),
        (json!({"no_timestamps_token_id": "x"}), "`no_timestamps_token_id` in the generation config"),
        (json!({"forced_decoder_ids": [[1, 5], [3, 6]]}), "no token for place 2, but one for place 3"),
        (json!({"lang_to_id": {"<|en|>": 99}}), "`lang_to_id` is 99"),
        (json!({"forced_eos_token_id": 99, "max_new_tokens": 1}), "`forced_eos_token_id` is 99"),
    ] {
        let found = error(settings);
        assert!(found.contains(expected), "{found}");
    }
    let long = Tensor::zeros([1, 8, 25], &device());
    let long = model.generate(SpeechInputs::new(long), &GenerationConfig::greedy(1), &ForwardKwargs::new());
    let long = long.map(drop).expect_err("too long").to_string();
    assert_eq!(long, "25 frames, of which the model hears 24 at once: `transcribe` goes through longer ones");
    let two = model.transcribe(features("whisper"), &config(&tables), &ForwardKwargs::new());
    assert!(matches!(two, Err(GenerateError::Forward(ForwardError::Shape { .. }))));
    let silent = model.transcribe(Tensor::zeros([1, 8, 0], &device()), &config(&tables), &ForwardKwargs::new());
    let silent = silent.map(drop).expect_err("nothing to hear").to_string();
    assert!(silent.contains("has shape [1, 8, 0], expected [1, mel bins, frames]"), "{silent}");
}

/// Old checkpoints have them in the model's config; what is written there counts or is an error.
#[test]
fn tokens_that_a_model_forces_are_read_or_refused() {
    let run = |forced: Value| {
        let dir = tempfile::tempdir().expect("a folder");
        for entry in std::fs::read_dir(folder("whisper")).expect("a folder").map(|entry| entry.expect("readable")) {
            if entry.file_type().expect("known").is_file() {
                std::fs::copy(entry.path(), dir.path().join(entry.file_name())).expect("copied");
            }
        }
        let path = dir.path().join("config.json");
        let mut config: Value = serde_json::from_slice(&std::fs::read(&path).expect("a config")).expect("JSON");
        config["forced_decoder_ids"] = forced;
        std::fs::write(&path, config.to_string()).expect("written");
        let model = WhisperForConditionalGeneration::from_pretrained(dir.path(), &device()).expect("loads");
        let found = model.generate(features("whisper"), &GenerationConfig::greedy(1), &ForwardKwargs::new());
        found.map(|found| rows(&found.sequences)[0][1]).map_err(|error| error.to_string())
    };
    assert_eq!(run(json!([[1, 5]])), Ok(5));
    assert!(run(Value::Null).is_ok());
    for malformed in [json!("5"), json!([1, 5]), json!([[1, "x"]])] {
        let error = run(malformed).expect_err("malformed");
        assert!(error.starts_with("`forced_decoder_ids` in the model's config: "), "{error}");
    }
}

#[test]
fn inputs_that_do_not_fit_are_errors() {
    let model = model("whisper");
    let kwargs = ForwardKwargs::new();
    let ids = || Tensor::<2, Int>::from_data([[3], [3]], (&device(), DType::I64));
    let forward = |features: Tensor<3>| {
        let inputs = Seq2SeqInputs::new(SpeechInputs::new(features)).decoder_input_ids(ids());
        model.forward(inputs, &kwargs).map(drop).map_err(|error| error.to_string())
    };
    for wrong in [[2, 8, 23], [2, 7, 24], [0, 8, 24], [2, 8, 25]] {
        let error = forward(Tensor::zeros(wrong, &device())).expect_err("does not fit");
        assert!(error.contains("expected [batch, 8, 24]"), "{error}");
    }
    let error = forward(features("whisper").cast(DType::F64)).expect_err("another type");
    assert!(error.contains("`input_features` is F64"), "{error}");
    let masked = Seq2SeqInputs::new(SpeechInputs::new(features("whisper")))
        .decoder_input_ids(ids())
        .encoder_attention_mask(Tensor::ones([2, 12], (&device(), DType::I64)));
    let error = model.forward(masked, &kwargs).map(drop).expect_err("no mask").to_string();
    assert_eq!(error, "`whisper` takes no `encoder_attention_mask`: silence is no padding");
    let long = Tensor::<2, Int>::full([2, 25], 3, (&device(), DType::I64));
    let long = Seq2SeqInputs::new(SpeechInputs::new(features("whisper"))).decoder_input_ids(long);
    assert!(matches!(model.forward(long, &kwargs), Err(ForwardError::TooLong { .. })));
}

#[test]
fn a_sound_has_no_labels_but_for_a_classifier() {
    let model = model("whisper");
    let kwargs = ForwardKwargs::new();
    let labelled = || SpeechInputs::new(features("whisper")).labels(Tensor::<1, Int>::zeros([2], &device()));
    let is_refused = |result: Result<(), ForwardError>| {
        assert!(matches!(result, Err(ForwardError::Unused { name: "labels", .. })), "{result:?}");
    };
    is_refused(model.model.encoder.forward(labelled(), &kwargs).map(drop));
    let ids = Tensor::<2, Int>::from_data([[3], [3]], (&device(), DType::I64));
    is_refused(model.forward(Seq2SeqInputs::new(labelled()).decoder_input_ids(ids), &kwargs).map(drop));
    let found = model.generate(labelled(), &GenerationConfig::greedy(1), &kwargs).map(drop);
    assert!(matches!(found, Err(GenerateError::Argument("labels"))), "{found:?}");
}

#[test]
fn the_encoder_hears_forwards_and_backwards_whatever_a_call_says() {
    let encoder = model("whisper").model.encoder;
    let run = |kwargs: ForwardKwargs| encoder.forward(features("whisper"), &kwargs).expect("runs").last_hidden_state;
    let expected = run(ForwardKwargs::new()).to_data();
    assert_eq!(run(ForwardKwargs::new().is_causal(true)).to_data(), expected);
}

#[test]
fn positions_of_sounds_are_not_trained() {
    let trained = |encoder: &WhisperEncoder| encoder.embed_positions.weight.is_require_grad();
    let config = WhisperConfig { max_source_positions: 12, d_model: 24, ..WhisperConfig::default() };
    assert!(!trained(&WhisperEncoder::new(&config, &Init::new(&device()))));
    assert!(!trained(&model("whisper").model.encoder));
}

#[test]
fn a_decoder_alone_is_a_language_model() {
    let options = LoadOptions::new();
    let (model, report) =
        WhisperForCausalLM::from_pretrained_with(folder("whisper-untied"), &device(), &options).expect("loads");
    assert!(report.missing.is_empty());
    let expected = tensors(&folder("whisper-untied").join("decoder.safetensors"));
    let ids = || ints::<2>(&inputs("whisper-untied")["decoder_input_ids"]);
    let labels = || ints::<2>(&expected["labels"]);
    let states = || floats::<3>(&expected["encoder_hidden_states"]);
    let kwargs = ForwardKwargs::new().output_hidden_states(true).output_attentions(true).use_cache(false);
    for (name, states) in [("alone", None), ("looking", Some(states()))] {
        let inputs = TextInputs::new(ids()).labels(labels()).encoder_hidden_states(states);
        let output = model.forward(inputs, &kwargs).expect("runs");
        let close3 = |key: &str, found: &Tensor<3>| assert_close(key, found, &expected[key], TOLERANCE);
        let close4 = |key: &str, found: &Tensor<4>| assert_close(key, found, &expected[key], TOLERANCE);
        close3(&format!("{name}.logits"), &output.logits);
        let loss = output.loss.as_ref().expect("labels were given");
        assert_close(name, loss, &expected[&format!("{name}.loss")], TOLERANCE);
        for (at, _, value) in output.hidden_states.iter() {
            close3(&format!("{name}.hidden_states.{at}"), value);
        }
        for (at, _, value) in output.attentions.iter() {
            close4(&format!("{name}.attentions.{at}"), value);
        }
        for (at, _, value) in output.cross_attentions.iter() {
            close4(&format!("{name}.cross_attentions.{at}"), value);
        }
        let counts = [output.hidden_states.len(), output.attentions.len(), output.cross_attentions.iter().count()];
        assert_eq!(counts, [3, 2, if name == "alone" { 0 } else { 2 }]);
    }
    // keys and values of what the encoder gave are made once, and looked at in every step
    let generate = |use_cache| {
        let config = GenerationConfig { use_cache, ..GenerationConfig::greedy(6) };
        let inputs = TextInputs::new(ids()).encoder_hidden_states(states());
        rows(&model.generate(inputs, &config, &ForwardKwargs::new()).expect("runs").sequences)
    };
    assert_eq!(generate(true), generate(false));
}

#[test]
fn labels_of_the_whole_are_not_shifted() {
    let expected = tensors(&folder("whisper-untied").join("decoder.safetensors"));
    let labels = ints::<2>(&inputs("whisper-untied")["decoder_input_ids"]);
    let inputs = Seq2SeqInputs::new(SpeechInputs::new(features("whisper-untied"))).labels(labels);
    let output = model("whisper-untied").forward(inputs, &ForwardKwargs::new()).expect("runs");
    assert_close("loss", &output.loss.expect("labels were given"), &expected["whole.loss"], TOLERANCE);
}

/// A classifier with the weights that it sums hidden states by.
fn summing(expected: &BTreeMap<String, TensorData>, device: &Device) -> WhisperForAudioClassification {
    let mut config = WhisperConfig::from_pretrained(folder("whisper-classes")).expect("a config");
    config.use_weighted_layer_sum = true;
    let options = LoadOptions::new().allow_missing(true);
    let model = WhisperForAudioClassification::new(&config, &Init::new(device));
    let (mut model, _) = model.load_weights_with(folder("whisper-classes"), &options).expect("loads");
    let weights = Tensor::<1>::from_data(expected["layer_weights"].clone(), (device, DType::F32));
    model.layer_weights = Some(Param::from_tensor(weights));
    model
}

#[test]
fn a_classifier_may_read_all_hidden_states() {
    let expected = tensors(&folder("whisper-classes").join("weighted.safetensors"));
    let model = summing(&expected, &device());
    let inputs = SpeechInputs::new(features("whisper-classes")).labels(ints::<1>(&expected["labels"]));
    let output = model.forward(inputs, &ForwardKwargs::new()).expect("runs");
    assert_close("logits", &output.logits, &expected["logits"], TOLERANCE);
    assert_close("loss", &output.loss.expect("labels were given"), &expected["loss"], TOLERANCE);
    assert_eq!(output.hidden_states.len(), 4);
    for (at, _, state) in output.hidden_states.iter() {
        assert_close("hidden state", state, &expected[&format!("hidden_states.{at}")], TOLERANCE);
    }
}

/// The sum is of the states as they are; what the caller gets of them is as asked for.
#[test]
fn what_is_recorded_does_not_change_what_a_classifier_reads() {
    let expected = tensors(&folder("whisper-classes").join("weighted.safetensors"));
    let model = summing(&expected, &device());
    let run = |kwargs: ForwardKwargs| model.forward(features("whisper-classes"), &kwargs).expect("runs");
    // recording attention weights takes another implementation than a fused one
    let plain = run(ForwardKwargs::new().output_attentions(true)).logits.to_data();
    let some = run(ForwardKwargs::new().output_hidden_states([0]).output_attentions(true).cast(FloatDType::F16));
    assert_eq!(some.logits.to_data(), plain);
    assert_eq!(some.hidden_states.iter().map(|(at, ..)| at).collect::<Vec<_>>(), [0]);
    assert_eq!(some.hidden_states.at(0).expect("asked for").dtype(), DType::F16);
    assert_eq!(some.attentions.at(0).expect("asked for").dtype(), DType::F16);
    let none = run(ForwardKwargs::new().output_hidden_states(false).output_attentions(true));
    assert_eq!(none.logits.to_data(), plain);
    assert!(!none.hidden_states.is_recorded());
}

#[cfg(feature = "autodiff")]
#[test]
fn an_encoder_learns_through_the_sum_of_its_states() {
    let expected = tensors(&folder("whisper-classes").join("weighted.safetensors"));
    let device = device().autodiff();
    let model = summing(&expected, &device);
    let features = Tensor::<3>::from_data(inputs("whisper-classes")["input_features"].clone(), (&device, DType::F32));
    let output = model.forward(features, &ForwardKwargs::new().output_hidden_states(true).detach(true)).expect("runs");
    let gradients = output.logits.sum().backward();
    let conv = model.encoder.conv1.weight.val().grad(&gradients).expect("it is trained");
    assert!(conv.abs().sum().into_scalar::<f32>() > 0.0);
}

#[test]
fn parts_are_loaded_out_of_the_whole() {
    let whole = model("whisper").model;
    let base = WhisperModel::from_pretrained(folder("whisper"), &device()).expect("loads");
    assert_eq!(base.num_params(), whole.num_params());
    let encoder = WhisperEncoder::from_pretrained(folder("whisper"), &device()).expect("loads");
    assert_eq!(encoder.num_params(), whole.encoder.num_params());
    let decoder = WhisperDecoder::from_pretrained(folder("whisper"), &device()).expect("loads");
    assert_eq!(decoder.num_params(), whole.decoder.num_params());
    let run = |encoder: &WhisperEncoder| encoder.forward(features("whisper"), &ForwardKwargs::new()).expect("runs");
    assert_eq!(run(&encoder).last_hidden_state.to_data(), run(&whole.encoder).last_hidden_state.to_data());
}

#[test]
fn configs_that_cannot_be_built_say_why() {
    let check = |change: fn(&mut WhisperConfig)| {
        let mut config = WhisperConfig::default();
        change(&mut config);
        config.validate().expect_err("cannot be built").to_string()
    };
    for (error, expected) in [
        (
            check(|config| config.encoder_attention_heads = 5),
            "`d_model` is 384, expected a multiple of `encoder_attention_heads`",
        ),
        (check(|config| config.decoder_attention_heads = 7), "expected a multiple of `decoder_attention_heads`"),
        (check(|config| config.decoder_attention_heads = 0), "`decoder_attention_heads` is 0"),
        (check(|config| config.d_model = 0), "`d_model` is 0"),
        (
            check(|config| {
                (config.d_model, config.encoder_attention_heads, config.decoder_attention_heads) = (33, 1, 1)
            }),
            "an even number",
        ),
        (check(|config| config.max_target_positions = 0), "`max_target_positions` is 0"),
        (check(|config| config.decoder_layers = 9999), "`decoder_layers` is 9999"),
        (check(|config| config.init_std = f64::NAN), "`init_std` is NaN"),
    ] {
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn old_configs_name_sizes_otherwise() {
    let old: WhisperConfig =
        serde_json::from_value(json!({"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 3}))
            .expect("a config");
    assert_eq!((old.d_model, old.encoder_attention_heads, old.encoder_layers, old.decoder_layers), (64, 4, 3, 4));
    // where both are there, both are kept
    let both = json!({"d_model": 64, "num_hidden_layers": 3, "encoder_layers": 3, "architectures": ["X"], "model_type": "whisper"});
    let both: WhisperConfig = serde_json::from_value(both).expect("a config");
    assert_eq!(serde_json::to_value(&both).expect("JSON")["num_hidden_layers"], 3);
}

#[derive(serde::Deserialize)]
struct Record {
    states: Vec<Vec<f32>>,
    norms: Vec<f32>,
    sequence: Vec<i64>,
    looks: Vec<Vec<Vec<i64>>>,
    weights: Vec<Vec<Vec<f32>>>,
    segments: Vec<Value>,
}

/// A real checkpoint, real speech, by [`real_speech.py`](../fixtures/real_speech.py): `BURN_MODELS_REAL=folder cargo test --
/// --ignored`.
#[test]
#[ignore = "needs the checkpoint"]
fn whisper_tiny_en() {
    let checkpoints = std::env::var_os("BURN_MODELS_REAL").expect("BURN_MODELS_REAL names the folder of checkpoints");
    let checkpoint = std::path::PathBuf::from(checkpoints).join("whisper-tiny.en");
    let record = std::fs::read_to_string(folder("whisper-tiny.en.json")).expect("a record");
    let record: Record = serde_json::from_str(&record).expect("a valid record");

    let (model, report) =
        WhisperForConditionalGeneration::from_pretrained_with(&checkpoint, &device(), &LoadOptions::new())
            .expect("loads");
    assert!(report.missing.is_empty() && report.unexpected.is_empty());
    let speech = read_wav(folder("audio").join("jfk.wav")).expect("a recording");
    let extractor = WhisperFeatureExtractor::from_pretrained(&checkpoint).expect("a config");
    let features = extractor.extract(&speech.samples, speech.sampling_rate, &device()).expect("features");

    let kwargs = ForwardKwargs::new().output_hidden_states(true);
    let encoded = model.model.encoder.forward(features.clone(), &kwargs).expect("runs");
    assert_eq!(encoded.hidden_states.len(), record.states.len());
    for (at, _, state) in encoded.hidden_states.iter() {
        assert_eq!(state.dims(), [1, 1500, 384]);
        let all: Vec<f32> = state.to_data().iter::<f32>().collect();
        let some = (0..1500).step_by(100).flat_map(|row| (0..384).step_by(16).map(move |column| row * 384 + column));
        for (place, expected) in some.zip(&record.states[at]) {
            assert!((all[place] - expected).abs() < 1e-3, "state {at} at {place}: {} and {expected}", all[place]);
        }
        let norm = all.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
        assert!((norm / f64::from(record.norms[at]) - 1.0).abs() < 1e-5, "state {at}: {norm}");
    }

    let config = GenerationConfig::from_pretrained(&checkpoint).expect("settings");
    let kwargs = ForwardKwargs::new().output_attentions(true);
    let output = model.generate(features.clone(), &config, &kwargs).expect("runs");
    assert_eq!(rows(&output.sequences), [record.sequence]);
    assert_eq!(output.steps.len(), record.looks.len());
    for (step, found) in output.steps.iter().enumerate() {
        assert_eq!(found.cross_attentions.len(), 4);
        for (layer, _, weights) in found.cross_attentions.iter() {
            let queries = if step == 0 { output.prompt_length } else { 1 };
            assert_eq!(weights.dims(), [1, 6, queries, 1500]);
            let last = weights.clone().slice_dim(2, queries - 1..queries);
            let most: Vec<f32> = last.clone().max_dim(3).to_data().iter::<f32>().collect();
            let looks: Vec<i64> = last.argmax(3).to_data().iter::<i64>().collect();
            for (head, expected) in record.weights[step][layer].iter().enumerate() {
                let what = format!("step {step}, layer {layer}, head {head}");
                assert!((most[head] - expected).abs() < 1e-3, "{what}: {} and {expected}", most[head]);
                assert_eq!(looks[head], record.looks[step][layer][head], "{what}");
            }
        }
    }

    let parts = model.transcribe(features, &config, &ForwardKwargs::new()).expect("runs").segments;
    assert_eq!(parts.len(), record.segments.len());
    for (found, expected) in parts.iter().zip(&record.segments) {
        let found = json!({"start": found.start, "end": found.end, "tokens": found.tokens});
        assert_eq!(&found, expected);
    }
}

#[test]
fn configs_are_written_as_they_were_read() {
    for case in ["whisper", "whisper-untied", "whisper-classes"] {
        let text = std::fs::read_to_string(folder(case).join("config.json")).expect("a config");
        let read: Value = serde_json::from_str(&text).expect("JSON");
        let config: WhisperConfig = serde_json::from_str(&text).expect("a config");
        assert_eq!(serde_json::to_value(&config).expect("JSON"), read, "{case}");
    }
}

#[cfg(feature = "autodiff")]
#[test]
fn all_but_the_positions_of_sounds_have_gradients() {
    let device = device().autodiff();
    let model = WhisperForConditionalGeneration::from_pretrained(folder("whisper-untied"), &device).expect("loads");
    let inputs = inputs("whisper-untied");
    let features = Tensor::<3>::from_data(inputs["input_features"].clone(), (&device, DType::F32));
    let labels = Tensor::<2, Int>::from_data(inputs["decoder_input_ids"].clone(), (&device, DType::I64));
    let inputs = Seq2SeqInputs::new(SpeechInputs::new(features)).labels(labels);
    let output = model.forward(inputs, &ForwardKwargs::new().use_cache(false)).expect("runs");
    let gradients = output.loss.expect("labels were given").backward();
    let encoder = &model.model.encoder;
    assert!(encoder.embed_positions.weight.val().grad(&gradients).is_none());
    let conv = encoder.conv1.weight.val().grad(&gradients).expect("it is trained");
    assert!(conv.abs().sum().into_scalar::<f32>() > 0.0);
    assert!(model.model.decoder.embed_tokens.weight.val().grad(&gradients).is_some());
}
