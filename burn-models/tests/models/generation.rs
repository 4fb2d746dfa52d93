use crate::support::{Case, TOLERANCE, assert_close, bits, device, devices, for_each_decoder, ids};
use burn::tensor::{Int, Tensor};
use burn_models::TextInputs;
use burn_models::generation::{GenerateError, GenerationConfig, generate, generate_with};
use burn_models::llama::LlamaForCausalLM;
use patching_core::prelude::*;
use std::ops::ControlFlow;

/// The case's inputs without its labels.
fn prompt(case: &Case, device: &burn::tensor::Device) -> TextInputs {
    TextInputs { labels: None, ..case.inputs(device) }
}

fn steps_of(case: &Case) -> usize {
    case.expected("generate.safetensors")["generated_ids"].shape()[1]
}

#[test]
fn greedy_tokens_are_the_reference_s() {
    for (on, device) in devices() {
        for_each_decoder!(case, Model => {
            if !case.generates() {
                continue;
            }
            let mut model: Model = case.load(&device);
            let expected = case.expected("generate.safetensors");
            let expected: Vec<i64> = expected["sequences"].iter::<i64>().collect();
            for attention in ["sdpa", "eager"] {
                model.set_attn_implementation(attention).expect("built in");
                for use_cache in [true, false] {
                    let config = GenerationConfig { use_cache, ..GenerationConfig::greedy(steps_of(&case)) };
                    let output = model.generate(prompt(&case, &device), &config, &ForwardKwargs::new());
                    let output = output.expect("generates");
                    assert_eq!(ids(&output.sequences), expected, "{} on {on}, {attention}, cache {use_cache}", case.name);
                    assert!(output.steps.is_empty());
                }
            }
        });
    }
}

#[test]
fn every_step_is_the_reference_s() {
    for (on, device) in devices() {
        let case = Case::new("llama");
        let model: LlamaForCausalLM = case.load(&device);
        let config = GenerationConfig { output_logits: true, ..GenerationConfig::greedy(12) };
        let kwargs = ForwardKwargs::new().output_hidden_states(true).output_attentions(true);
        let output = model.generate(prompt(&case, &device), &config, &kwargs).expect("generates");
        let expected = case.expected("generate_steps.safetensors");
        assert_eq!(output.steps.len(), 12);
        let mut checked = 0;
        for (step, found) in output.steps.iter().enumerate() {
            let name = |key: &str| format!("step.{step}.{key}");
            let [batch, _, vocabulary] = found.logits.dims();
            let logits = found.logits.clone().reshape([batch, vocabulary]);
            assert_close(&format!("{on}: {}", name("logits")), &logits, &expected[&name("logits")], TOLERANCE);
            for (index, _, value) in found.hidden_states.iter() {
                let key = name(&format!("hidden_states.{index}"));
                assert_close(&format!("{on}: {key}"), value, &expected[&key], TOLERANCE);
                checked += 1;
            }
            for (index, _, value) in found.attentions.iter() {
                let key = name(&format!("attentions.{index}"));
                assert_close(&format!("{on}: {key}"), value, &expected[&key], TOLERANCE);
                checked += 1;
            }
            assert!(found.cache.is_none());
        }
        assert_eq!(checked + 12, expected.len());
    }
}

#[test]
fn a_sequence_that_ends_is_filled_up() {
    let device = device();
    let case = Case::new("llama");
    let model: LlamaForCausalLM = case.load(&device);
    let eos = case.meta["generate"]["with_eos"]["eos_token_id"].as_i64().expect("a token");
    let expected = &case.expected("generate.safetensors")["sequences_with_eos"];
    let expected: Vec<i64> = expected.iter::<i64>().collect();
    for use_cache in [true, false] {
        let config =
            GenerationConfig { use_cache, eos_token_id: Some([1, eos].into()), ..GenerationConfig::greedy(12) };
        let output = model.generate(prompt(&case, &device), &config, &ForwardKwargs::new()).expect("generates");
        assert_eq!(ids(&output.sequences), expected);
        assert_eq!(output.new_tokens[0], [45, eos]);
        assert_eq!(output.new_tokens[1].len(), 12);
    }
}

#[test]
fn padding_does_not_change_what_follows() {
    let device = device();
    let case = Case::new("llama");
    let model: LlamaForCausalLM = case.load(&device);
    let inputs = prompt(&case, &device);
    let padded =
        model.generate(inputs.clone(), &GenerationConfig::greedy(8), &ForwardKwargs::new()).expect("generates");
    // Row 1 has four tokens of padding on the left.
    let alone = inputs.input_ids.expect("tokens").slice([1..2, 4..10]);
    let alone = model.generate(alone, &GenerationConfig::greedy(8), &ForwardKwargs::new()).expect("generates");
    assert_eq!(padded.new_tokens[1], alone.new_tokens[0]);
}

#[test]
fn sampling_repeats_with_a_seed_and_follows_the_greedy_path_when_cold() {
    let device = device();
    let case = Case::new("llama");
    let model: LlamaForCausalLM = case.load(&device);
    let run = |config: &GenerationConfig| {
        model.generate(prompt(&case, &device), config, &ForwardKwargs::new()).expect("generates").new_tokens
    };
    let warm = |seed| GenerationConfig { temperature: Some(1.5), ..GenerationConfig::sample(10, seed) };
    assert_eq!(run(&warm(1)), run(&warm(1)));
    assert_ne!(run(&warm(1)), run(&warm(2)));
    let greedy = run(&GenerationConfig::greedy(10));
    for cold in [
        GenerationConfig { temperature: Some(1e-4), ..GenerationConfig::sample(10, 5) },
        GenerationConfig { top_k: Some(1), ..GenerationConfig::sample(10, 5) },
        GenerationConfig { top_p: Some(1e-9), ..GenerationConfig::sample(10, 5) },
    ] {
        assert_eq!(run(&cold), greedy);
    }
}

#[test]
fn the_callback_sees_each_step_and_may_stop() {
    let device = device();
    let case = Case::new("llama");
    let model: LlamaForCausalLM = case.load(&device);
    let mut seen = Vec::new();
    let output =
        generate_with(&model, prompt(&case, &device), &GenerationConfig::greedy(12), &ForwardKwargs::new(), |step| {
            assert_eq!(step.output.logits.dims(), [2, 1, 99]);
            seen.push(step.tokens[0]);
            if step.index == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .expect("generates");
    assert_eq!(seen, output.new_tokens[0]);
    assert_eq!(seen.len(), 4);
}

#[test]
fn length_limits() {
    let device = device();
    let case = Case::new("llama");
    let model: LlamaForCausalLM = case.load(&device);
    let length = |config: &GenerationConfig| {
        generate(&model, prompt(&case, &device), config, &ForwardKwargs::new()).map(|output| output.sequences.dims()[1])
    };
    let by_length = GenerationConfig { max_length: Some(14), ..GenerationConfig::default() };
    assert_eq!(length(&by_length).expect("fits"), 14);
    assert_eq!(length(&GenerationConfig::default()).expect("fits"), 30);
    let both = GenerationConfig { max_new_tokens: Some(1), ..by_length };
    assert_eq!(length(&both).expect("fits"), 11);
    assert_eq!(length(&GenerationConfig::greedy(0)).expect("fits"), 10);
    let short = GenerationConfig { max_length: Some(10), ..GenerationConfig::default() };
    let error = length(&short).expect_err("no room").to_string();
    assert_eq!(error, "`max_length` is 10, expected more than the prompt has tokens");
}

#[test]
fn wrong_settings_are_errors() {
    let device = device();
    let case = Case::new("llama");
    let model: LlamaForCausalLM = case.load(&device);
    let kwargs = ForwardKwargs::new();
    for (config, field) in [
        (GenerationConfig { temperature: Some(0.0), ..GenerationConfig::sample(1, 1) }, "temperature"),
        (GenerationConfig { temperature: Some(f64::NAN), ..GenerationConfig::sample(1, 1) }, "temperature"),
        (GenerationConfig { top_p: Some(0.0), ..GenerationConfig::sample(1, 1) }, "top_p"),
        (GenerationConfig { top_p: Some(1.5), ..GenerationConfig::sample(1, 1) }, "top_p"),
    ] {
        let error = model.generate(prompt(&case, &device), &config, &kwargs).expect_err("refused").to_string();
        assert!(error.contains(field), "{error}");
    }
    let mut config = GenerationConfig::greedy(1);
    config.extra.insert("repetition_penalty".to_owned(), 1.1.into());
    config.extra.insert("num_beams".to_owned(), 1.into());
    let error = model.generate(prompt(&case, &device), &config, &kwargs).expect_err("refused").to_string();
    assert!(error.contains("not supported: `repetition_penalty` is 1.1; take them out"), "{error}");
    let embeds = Tensor::<3>::zeros([1, 2, 32], &device);
    let error = model.generate(TextInputs::from_embeds(embeds), &GenerationConfig::greedy(1), &kwargs);
    assert!(matches!(error, Err(GenerateError::NoPrompt)));
    let outside = Tensor::<2, Int>::from_data([[99]], &device);
    assert!(model.generate(outside, &GenerationConfig::greedy(1), &kwargs).is_err());
}

#[test]
fn generation_config_files() {
    let case = Case::new("llama");
    let config = GenerationConfig::from_pretrained(case.folder()).expect("valid");
    assert_eq!(config.pad_token_id, Some(0));
    assert!(config.use_cache && !config.do_sample);
    let text = serde_json::to_value(&config).expect("JSON");
    assert_eq!(text["transformers_version"], "5.24.0");

    let dir = tempfile::tempdir().expect("a folder");
    assert_eq!(GenerationConfig::from_pretrained(dir.path()).expect("absent"), GenerationConfig::default());
    std::fs::write(dir.path().join("generation_config.json"), "{\"temperature\": -1}").expect("written");
    let error = GenerationConfig::from_pretrained(dir.path()).expect_err("wrong").to_string();
    assert!(error.contains("`temperature` is -1"), "{error}");

    // What cannot be followed can be read, to be taken out.
    let write = |text: &str| std::fs::write(dir.path().join("generation_config.json"), text).expect("written");
    write("{\"do_sample\": false, \"num_beams\": 4}");
    let mut config = GenerationConfig::from_pretrained(dir.path()).expect("it can be read");
    let error = config.validate().expect_err("not followed").to_string();
    assert!(error.contains("`num_beams` is 4"), "{error}");
    config.extra.remove("num_beams");
    assert!(config.validate().is_ok());

    write(&" ".repeat((1 << 20) + 1));
    let error = GenerationConfig::from_pretrained(dir.path()).expect_err("too large").to_string();
    assert!(error.contains("expected at most 1048576"), "{error}");

    // Without it, the model's config says which tokens are suppressed or forced.
    std::fs::remove_file(dir.path().join("generation_config.json")).expect("it was there");
    let of_model = r#"{"suppress_tokens": [5, 6], "forced_decoder_ids": [[1, null], [2, 7]], "num_beams": 4}"#;
    std::fs::write(dir.path().join("config.json"), of_model).expect("written");
    let config = GenerationConfig::from_pretrained(dir.path()).expect("it can be read");
    let expected = GenerationConfig {
        suppress_tokens: Some(vec![5, 6]),
        forced_decoder_ids: Some(vec![(1, None), (2, Some(7))]),
        ..GenerationConfig::default()
    };
    assert_eq!(config, expected);
    std::fs::write(dir.path().join("config.json"), r#"{"suppress_tokens": 5}"#).expect("written");
    let error = GenerationConfig::from_pretrained(dir.path()).expect_err("no list").to_string();
    assert!(error.contains("config.json") && error.contains("`suppress_tokens`"), "{error}");
}

/// Tokens of any model that are forced or never chosen, greedily and by drawing.
#[test]
fn suppressed_and_forced_tokens_are_followed() {
    let device = device();
    let case = Case::new("llama");
    let model: LlamaForCausalLM = case.load(&device);
    let run = |config: &GenerationConfig| {
        let output = model.generate(prompt(&case, &device), config, &ForwardKwargs::new()).expect("generates");
        output.new_tokens
    };
    let plain = run(&GenerationConfig::greedy(4));
    let first = plain[0][0];
    for do_sample in [false, true] {
        let config = |set: fn(&mut GenerationConfig, i64), token| {
            let mut config = GenerationConfig { do_sample, seed: Some(3), ..GenerationConfig::greedy(4) };
            set(&mut config, token);
            run(&config)
        };
        let never = config(|config, token| config.suppress_tokens = Some(vec![token]), first);
        assert!(never.iter().flatten().all(|token| *token != first), "{never:?}");
        let not_first = config(|config, token| config.begin_suppress_tokens = Some(vec![token]), first);
        assert!(not_first.iter().all(|row| row[0] != first), "{not_first:?}");
        let ended = config(|config, token| config.forced_eos_token_id = Some(token.into()), 7);
        assert!(ended.iter().all(|row| row.len() == 4 && row[3] == 7), "{ended:?}");
        // the prompt is longer than one token, so that no beginning is forced
        let begun = config(|config, token| config.forced_bos_token_id = Some(token), first + 1);
        assert!(do_sample || begun == plain, "{begun:?}");
    }
    let length = prompt(&case, &device).input_ids.expect("tokens").dims()[1];
    let places = GenerationConfig {
        forced_decoder_ids: Some(vec![(length + 1, Some(9)), (length + 2, Some(8))]),
        ..GenerationConfig::greedy(4)
    };
    let found = run(&places);
    assert!(found.iter().zip(&plain).all(|(row, plain)| row[..3] == [plain[0], 9, 8]), "{found:?}");
}

/// Each key on its own has its steps kept.
#[test]
fn steps_are_kept_for_every_key() {
    let device = device();
    let case = Case::new("llama");
    let model: LlamaForCausalLM = case.load(&device);
    for key in <burn_models::CausalLMOutputWithPast as ModelOutput>::KEYS {
        let kwargs = ForwardKwargs::new().output(*key, true);
        let output = model.generate(prompt(&case, &device), &GenerationConfig::greedy(3), &kwargs).expect("generates");
        assert_eq!(output.steps.len(), 3, "{key}");
    }
}

#[test]
fn recording_does_not_change_the_tokens() {
    let device = device();
    for_each_decoder!(case, Model => {
        let model: Model = case.load(&device);
        let config = GenerationConfig { output_logits: true, ..GenerationConfig::greedy(4) };
        let plain = model.generate(prompt(&case, &device), &config, &ForwardKwargs::new()).expect("generates");
        let kwargs = ForwardKwargs::new().output_hidden_states(true);
        let recorded = model.generate(prompt(&case, &device), &config, &kwargs).expect("generates");
        for (a, b) in plain.steps.iter().zip(&recorded.steps) {
            assert_eq!(bits(&a.logits), bits(&b.logits), "{}", case.name);
        }
        assert_eq!(plain.new_tokens, recorded.new_tokens);
    });
}
