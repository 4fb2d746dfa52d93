//! What is special in GPT-2: weights that lie in files as they are used, published names without a prefix, learned
//! positions.

use crate::support::{Case, TOLERANCE, assert_close, bits, device, devices, ids, tensors, weights};
use burn::tensor::{DType, FloatDType, Int, Tensor, TensorData};
use burn_models::TextInputs;
use burn_models::generation::GenerationConfig;
use burn_models::gpt2::*;
use patching_core::prelude::*;
use patching_core::weights::LoadOptions;
use safetensors::tensor::{Dtype, TensorView};

fn ints<const D: usize>(data: impl Into<TensorData>) -> Tensor<D, Int> {
    Tensor::from_data(data.into(), (&device(), DType::I64))
}

/// The tensors of a case under other names, with `more` besides, and its config.
fn renamed(
    case: &Case,
    name: impl Fn(&str) -> String,
    more: Vec<(String, Dtype, Vec<usize>, Vec<u8>)>,
) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::copy(case.folder().join("config.json"), dir.path().join("config.json")).expect("copied");
    let bytes = weights(case.folder());
    let file = safetensors::SafeTensors::deserialize(&bytes).expect("valid");
    let own = file.tensors().into_iter().map(|(key, view)| (name(&key), view));
    let more = more.iter().map(|(key, dtype, shape, bytes)| {
        (key.clone(), TensorView::new(*dtype, shape.clone(), bytes).expect("a tensor"))
    });
    let metadata = [("format".to_owned(), "pt".to_owned())].into();
    let file = safetensors::serialize(own.chain(more), Some(metadata)).expect("valid");
    std::fs::write(dir.path().join("model.safetensors"), file).expect("written");
    dir
}

fn floats(values: usize) -> Vec<u8> {
    (0..values).flat_map(|value| (value as f32).to_le_bytes()).collect()
}

/// As OpenAI's checkpoints are published: without a prefix, with the causal mask of each layer as buffers.
#[test]
fn published_checkpoints_load_into_every_class() {
    let case = Case::new("gpt2");
    let buffers = || {
        (0..2)
            .flat_map(|layer| {
                let mask = (format!("h.{layer}.attn.bias"), Dtype::F32, vec![1, 1, 4, 4], floats(16));
                [mask, (format!("h.{layer}.attn.masked_bias"), Dtype::F32, vec![], floats(1))]
            })
            .collect::<Vec<_>>()
    };
    let own_name = |key: &str| key.strip_prefix("transformer.").unwrap_or(key).to_owned();
    let plain = GPT2LMHeadModel::from_pretrained(case.folder(), &device()).expect("loads");
    let run = |model: &GPT2LMHeadModel| {
        bits(&model.forward(case.inputs(&device()), &ForwardKwargs::new()).expect("runs").logits)
    };
    let names = ["h.0.attn.bias", "h.0.attn.masked_bias", "h.1.attn.bias", "h.1.attn.masked_bias"];

    let published = renamed(&case, own_name, buffers());
    let options = LoadOptions::new();
    let (model, report) =
        GPT2LMHeadModel::from_pretrained_with(published.path(), &device(), &options).expect("a head of a base model");
    assert_eq!(run(&model), run(&plain));
    assert_eq!(report.unexpected, names);
    let (base, report) = GPT2Model::from_pretrained_with(published.path(), &device(), &options).expect("its own");
    assert_eq!(report.unexpected, names);
    let base = base.forward(case.inputs(&device()), &ForwardKwargs::new()).expect("runs").last_hidden_state;
    let inside = plain.transformer.forward(case.inputs(&device()), &ForwardKwargs::new()).expect("runs");
    assert_eq!(bits(&base), bits(&inside.last_hidden_state));

    // without buffers, a base model is saved as it was
    let published = renamed(&case, own_name, Vec::new());
    let base = GPT2Model::from_pretrained(published.path(), &device()).expect("its own");
    let saved = tempfile::tempdir().expect("a folder");
    base.save_pretrained(saved.path()).expect("saves");
    assert!(weights(saved.path()) == weights(published.path()), "other bytes");

    // a head that is tied may be in the file as well
    let table = tensors(&case.folder().join("model.safetensors"))["transformer.wte.weight"].clone();
    let head = ("lm_head.weight".to_owned(), Dtype::F32, table.shape().to_vec(), table.as_bytes().to_vec());
    let tied = renamed(&case, str::to_owned, vec![head]);
    let (model, report) = GPT2LMHeadModel::from_pretrained_with(tied.path(), &device(), &options).expect("tied");
    assert!(report.is_exact(), "{report}");
    assert_eq!(run(&model), run(&plain));
    let saved = tempfile::tempdir().expect("a folder");
    model.save_pretrained(saved.path()).expect("saves");
    assert!(weights(saved.path()) == weights(tied.path()), "other bytes");
}

/// Padding on the left moves learned positions in `forward`, but not in `generate`, which counts real tokens.
#[test]
fn generation_counts_real_tokens() {
    let case = Case::new("gpt2");
    let model: GPT2LMHeadModel = case.load(&device());
    let prompt = TextInputs { labels: None, ..case.inputs(&device()) };
    let config = GenerationConfig::greedy(6);
    let padded = model.generate(prompt.clone(), &config, &ForwardKwargs::new()).expect("generates");
    let mask = ids(&prompt.attention_mask.expect("a mask"));
    let tokens = ids(&prompt.input_ids.expect("tokens"));
    let mut was_padded = false;
    for (row, (mask, tokens)) in mask.chunks(10).zip(tokens.chunks(10)).enumerate() {
        let real: Vec<i64> = mask.iter().zip(tokens).filter(|(mask, _)| **mask != 0).map(|(_, token)| *token).collect();
        was_padded |= real.len() < 10;
        let alone = ints::<1>(real.as_slice()).unsqueeze::<2>();
        let alone = model.generate(alone, &config, &ForwardKwargs::new()).expect("generates");
        assert_eq!(padded.new_tokens[row], alone.new_tokens[0]);
    }
    assert!(was_padded);
}

/// A prompt of token types goes on with that of its last token, with a cache and without.
#[test]
fn token_types_go_on_in_generation() {
    let case = Case::new("gpt2");
    let model: GPT2LMHeadModel = case.load(&device());
    let prompt = ints::<2>([[5, 6, 7, 8]]);
    let types = ints::<2>([[1, 1, 2, 2]]);
    let inputs = || TextInputs::new(prompt.clone()).token_type_ids(types.clone());
    let run = |use_cache| {
        let config = GenerationConfig { use_cache, ..GenerationConfig::greedy(5) };
        ids(&model.generate(inputs(), &config, &ForwardKwargs::new()).expect("generates").sequences)
    };
    let found = run(true);
    assert_eq!(found, run(false));
    // each token is what the model says after all before it
    for length in 4..found.len() {
        let types = [[1, 1].to_vec(), vec![2; length - 2]].concat();
        let inputs = TextInputs::new(ints::<1>(&found[..length]).unsqueeze::<2>());
        let inputs = inputs.token_type_ids(ints::<1>(types.as_slice()).unsqueeze::<2>());
        let logits = model.forward(inputs, &ForwardKwargs::new()).expect("runs").logits;
        let next: i64 = logits.slice_dim(1, length - 1..length).argmax(2).into_scalar();
        assert_eq!(next, found[length], "token {length}");
    }
}

#[test]
fn positions_beyond_the_table_are_errors() {
    let model: GPT2LMHeadModel = Case::new("gpt2").load(&device());
    let ids = ints::<2>([[5, 6, 7, 8]]);
    let error = model.generate(ids, &GenerationConfig::greedy(40), &ForwardKwargs::new()).expect_err("too long");
    assert!(error.to_string().contains("have 33 tokens with those seen before, expected at most 32"), "{error}");
    let types = TextInputs::new(ints([[5]])).token_type_ids(ints::<2>([[99]]));
    let error = model.forward(types, &ForwardKwargs::new()).expect_err("no such type").to_string();
    assert!(error.contains("`token_type_ids` holds 99, expected 0 to 98"), "{error}");
}

#[test]
fn heads_without_a_field_for_it_take_no_encoder() {
    let model: GPT2ForTokenClassification = Case::new("gpt2-tokens").load(&device());
    let inputs = TextInputs::new(ints([[5]])).encoder_hidden_states(Tensor::<3>::ones([1, 2, 12], &device()));
    let error = model.forward(inputs, &ForwardKwargs::new()).expect_err("no field").to_string();
    assert_eq!(error, "`gpt2` takes no `encoder_hidden_states` with this head");
}

/// Scores in f32 are nearer to those of a model in f32 than scores in bf16 are.
#[test]
fn scores_may_be_computed_in_f32() {
    let case = Case::new("gpt2");
    let load = |upcasts: bool, dtype| {
        let mut config = GPT2Config::from_pretrained(case.folder()).expect("a config");
        config.reorder_and_upcast_attn = upcasts;
        let model = GPT2LMHeadModel::from_config(&config, &device()).expect("built");
        model.load_weights_with(case.folder(), &LoadOptions::new().dtype(dtype)).expect("loads").0
    };
    let run = |model: &GPT2LMHeadModel| {
        let kwargs = ForwardKwargs::new().output_attentions([0]);
        let output = model.forward(case.inputs(&device()), &kwargs).expect("runs");
        let weights = output.attentions.at(0).expect("there").clone();
        (weights.dtype(), weights.cast(DType::F32), output.logits.dtype())
    };
    let (_, exact, _) = run(&load(false, FloatDType::F32));
    let distance = |upcasts| {
        let (weights_dtype, weights, logits_dtype) = run(&load(upcasts, FloatDType::BF16));
        assert_eq!((weights_dtype, logits_dtype), (DType::BF16, DType::BF16));
        (weights - exact.clone()).abs().mean().into_scalar::<f32>()
    };
    let (wide, narrow) = (distance(true), distance(false));
    assert!(wide < narrow, "{wide} and {narrow}");
}

#[test]
fn configs_by_the_names_of_other_families() {
    let text = r#"{"hidden_size": 24, "num_attention_heads": 3, "num_hidden_layers": 5, "max_position_embeddings": 7}"#;
    let config: GPT2Config = serde_json::from_str(text).expect("readable");
    assert_eq!((config.n_embd, config.n_head, config.n_layer, config.n_positions), (24, 3, 5, 7));
    assert_eq!(config.intermediate_size(), 96);
    assert!(config.validate().is_ok());
    let written = serde_json::to_value(&config).expect("JSON");
    assert_eq!((&written["n_embd"], written.get("hidden_size")), (&24.into(), None));
    let refused = |text: &str| {
        let config: GPT2Config = serde_json::from_str(text).expect("readable");
        config.validate().expect_err("refused").to_string()
    };
    assert!(refused(r#"{"n_head": 5}"#).contains("`n_embd` is 768, expected a multiple of `n_head`, which is 5"));
    assert!(refused(r#"{"n_inner": 0}"#).contains("`n_inner` is 0"));
    assert!(refused(r#"{"n_positions": 0}"#).contains("`n_positions` is 0"));
}

/// With a cache, a step at a time, through attention to an encoder as well.
#[test]
fn steps_with_a_cache_are_the_whole_at_once() {
    for (on, device) in devices() {
        let case = Case::new("gpt2-cross");
        let model: GPT2LMHeadModel = case.load(&device);
        let mut all = tensors(&case.weights().join("inputs.safetensors"));
        let mut take =
            |name: &str| Tensor::<2, Int>::from_data(all.remove(name).expect("there"), (&device, DType::I64));
        let (ids, mask, types) = (take("input_ids"), take("attention_mask"), take("token_type_ids"));
        let encoder_mask = take("encoder_attention_mask");
        let states = Tensor::<3>::from_data(all.remove("encoder_hidden_states").expect("there"), (&device, DType::F32));
        let inputs = |range: std::ops::Range<usize>| {
            TextInputs::new(ids.clone().slice_dim(1, range.clone()))
                .attention_mask(mask.clone().slice_dim(1, 0..range.end))
                .token_type_ids(types.clone().slice_dim(1, range))
                .encoder_hidden_states(states.clone())
                .encoder_attention_mask(encoder_mask.clone())
        };
        let seq = ids.dims()[1];
        let kwargs = ForwardKwargs::new().use_cache(true);
        let whole = model.forward(inputs(0..seq), &kwargs).expect("runs").logits;
        let mut cache = None;
        for (start, end) in [(0, 4), (4, 5), (5, seq)] {
            let output = model.forward(inputs(start..end).cache(cache.take()), &kwargs).expect("runs");
            // padding looks at all there is, which is less in a step
            let real = mask.clone().slice_dim(1, start..end).float().unsqueeze_dim::<3>(2);
            let expected = (whole.clone().slice_dim(1, start..end) * real.clone()).to_data();
            assert_close(&format!("from {start} on {on}"), &(output.logits * real), &expected, TOLERANCE);
            cache = output.cache;
        }
    }
}
