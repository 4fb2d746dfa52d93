//! T5: what shares its embedding, its configs, its inputs, and answers of its decoder.

use crate::support::{Case, bits, device, devices, difference, ids, tensors};
use burn::module::Module;
use burn::tensor::{DType, Device, FloatDType, Int, Tensor};
use burn_models::generation::{GenerateError, GenerationConfig};
use burn_models::t5::{
    T5Config, T5EncoderModel, T5ForConditionalGeneration, T5ForSequenceClassification, T5Model, T5Stack, T5Untied,
};
use burn_models::{ForwardError, Seq2SeqInputs, Seq2SeqLMOutput, TextInputs};
use patching_core::prelude::*;
use patching_core::weights::LoadOptions;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use std::collections::BTreeMap;
use std::path::Path;

fn load<M: PreTrainedModel>(case: &Case, device: &Device) -> M {
    let options = LoadOptions::new().dtype(FloatDType::F32);
    M::from_pretrained_with(case.folder(), device, &options).expect("loads").0
}

/// The case's inputs: of the encoder with its mask, and of the decoder.
fn inputs(case: &Case, device: &Device) -> Seq2SeqInputs {
    let decoder = tensors(&case.folder().join("inputs.safetensors")).remove("decoder_input_ids");
    let decoder = decoder.map(|data| Tensor::<2, Int>::from_data(data, (device, DType::I64)));
    Seq2SeqInputs::new(case.inputs(device)).decoder_input_ids(decoder)
}

fn run(model: &T5ForConditionalGeneration, inputs: Seq2SeqInputs) -> Seq2SeqLMOutput {
    model.forward(inputs, &ForwardKwargs::new()).expect("runs")
}

type File = BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>;

fn read(path: &Path) -> File {
    let bytes = std::fs::read(path).expect("readable");
    let file = SafeTensors::deserialize(&bytes).expect("valid");
    let owned = |view: TensorView<'_>| (view.dtype(), view.shape().to_vec(), view.data().to_vec());
    file.tensors().into_iter().map(|(name, view)| (name, owned(view))).collect()
}

/// The checkpoint of `case` with other weights, in a folder of its own.
fn checkpoint(case: &Case, change: impl FnOnce(&mut File)) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::copy(case.folder().join("config.json"), dir.path().join("config.json")).expect("copied");
    let mut file = read(&case.folder().join("model.safetensors"));
    change(&mut file);
    let views = file.iter().map(|(name, (dtype, shape, data))| {
        (name.clone(), TensorView::new(*dtype, shape.clone(), data).expect("fits"))
    });
    safetensors::serialize_to_file(views, None, &dir.path().join("model.safetensors")).expect("written");
    dir
}

const SHARED: &str = "shared.weight";
const ENCODER: &str = "encoder.embed_tokens.weight";
const DECODER: &str = "decoder.embed_tokens.weight";
const HEAD: &str = "lm_head.weight";

/// Half of each of the tensor's f32 values.
fn halved((dtype, shape, data): &(Dtype, Vec<usize>, Vec<u8>)) -> (Dtype, Vec<usize>, Vec<u8>) {
    let values = data.chunks_exact(4).map(|b| 0.5 * f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    (*dtype, shape.clone(), values.flat_map(f32::to_le_bytes).collect())
}

/// Whatever of the embedding's four keys a checkpoint has, the model is the one that the reference makes of it: one weight
/// where they are equal or alone, several where they differ. The numbers are sums of the reference's logits.
#[test]
fn the_embedding_is_shared_as_far_as_the_checkpoint_shares_it() {
    struct Variant {
        change: fn(&mut File),
        sum: f32,
        untied: T5Untied,
    }
    let tied = T5Untied::default();
    let variants = [
        Variant {
            change: |file| {
                let shared = file[SHARED].clone();
                file.extend([ENCODER, DECODER, HEAD].map(|key| (key.to_owned(), shared.clone())));
            },
            sum: -0.254_351_85,
            untied: tied,
        },
        Variant {
            change: |file| {
                let shared = file.remove(SHARED).expect("there");
                file.insert(ENCODER.to_owned(), shared);
            },
            sum: -0.254_351_85,
            untied: tied,
        },
        Variant {
            change: |file| {
                let shared = file.remove(SHARED).expect("there");
                file.insert(HEAD.to_owned(), shared);
            },
            sum: -0.254_351_85,
            untied: tied,
        },
        Variant {
            change: |file| {
                let half = halved(&file[SHARED]);
                file.insert(ENCODER.to_owned(), half);
            },
            sum: -1.639_326_8,
            untied: T5Untied { encoder: true, ..tied },
        },
        Variant {
            change: |file| {
                let half = halved(&file[SHARED]);
                file.extend([DECODER, HEAD].map(|key| (key.to_owned(), half.clone())));
            },
            sum: -0.142_906_55,
            untied: T5Untied { decoder: true, lm_head: true, ..tied },
        },
        Variant {
            change: |file| {
                let shared = file.remove(SHARED).expect("there");
                file.insert(HEAD.to_owned(), halved(&shared));
                file.insert(ENCODER.to_owned(), shared);
            },
            sum: -0.127_175_93,
            untied: T5Untied { lm_head: true, ..tied },
        },
    ];
    let case = Case::new("t5");
    let device = device();
    let plain = load::<T5ForConditionalGeneration>(&case, &device).num_params();
    for (at, Variant { change, sum, untied }) in variants.into_iter().enumerate() {
        let dir = checkpoint(&case, change);
        let model = T5ForConditionalGeneration::from_pretrained(dir.path(), &device).expect("loads");
        let found = run(&model, inputs(&case, &device)).logits.sum().into_scalar::<f32>();
        assert!((found - sum).abs() < 1e-3, "variant {at}: {found}, not {sum}");
        assert_eq!(model.config().untied, untied, "variant {at}");
        let own = [untied.encoder, untied.decoder, untied.lm_head];
        let count = own.iter().filter(|is_own| **is_own).count();
        assert_eq!(model.num_params(), plain + count * 99 * 32, "variant {at}");

        // saved as it was found
        let saved = tempfile::tempdir().expect("a folder");
        model.save_pretrained(saved.path()).expect("saves");
        let [given, written] = [&dir, &saved].map(|dir| read(&dir.path().join("model.safetensors")));
        assert_eq!(written.keys().collect::<Vec<_>>(), given.keys().collect::<Vec<_>>(), "variant {at}");
        assert!(written == given, "variant {at}: other bytes");
        assert!(T5ForConditionalGeneration::from_pretrained(saved.path(), &device).is_ok());
    }
}

/// A model without a head does not mind a head of its own in the checkpoint, and other models take their parts of it.
#[test]
fn other_models_load_from_the_same_checkpoint() {
    let device = device();
    let case = Case::new("t5-gated");
    let whole: T5ForConditionalGeneration = load(&case, &device);
    let base: T5Model = load(&case, &device);
    let encoder: T5EncoderModel = load(&case, &device);
    assert!(whole.lm_head.is_some() && whole.config().untied.lm_head && !base.config().untied.lm_head);
    let output = run(&whole, inputs(&case, &device));
    let base = base.forward(inputs(&case, &device), &ForwardKwargs::new()).expect("runs");
    let alone = encoder.forward(case.inputs(&device), &ForwardKwargs::new()).expect("runs").last_hidden_state;
    for states in [output.encoder_last_hidden_state, base.encoder_last_hidden_state] {
        assert_eq!(bits(&states.expect("it ran")), bits(&alone));
    }
    let model = T5ForConditionalGeneration::new(
        &T5Config { untied: T5Untied::default(), ..whole.config().clone() },
        &Init::new(&device),
    );
    let error = model.load_weights(case.folder()).expect_err("two weights for one").to_string();
    assert!(error.contains("`lm_head.weight` differs from `shared.weight`"), "{error}");
}

#[test]
fn both_spellings_of_a_config_are_one_model() {
    let device = device();
    let case = Case::new("t5-gated");
    let new: T5ForConditionalGeneration = load(&case, &device);
    let dir = checkpoint(&case, |_| {});
    std::fs::copy(case.folder().join("config.legacy.json"), dir.path().join("config.json")).expect("copied");
    let old = T5ForConditionalGeneration::from_pretrained(dir.path(), &device).expect("loads");
    assert!(!old.config().scales_outputs());
    let logits = |model| bits(&run(model, inputs(&case, &device)).logits);
    assert_eq!(logits(&old), logits(&new));
}

fn config(fields: serde_json::Value) -> Result<T5Config, String> {
    let config: T5Config = serde_json::from_value(fields).map_err(|error| error.to_string())?;
    config.validate().map_err(|error| error.to_string())?;
    Ok(config)
}

#[test]
fn configs_mean_what_they_mean_in_the_reference() {
    use burn_models::layers::Activation;
    use serde_json::json;
    let block = |fields| config(fields).map(|config| (config.is_gated(), config.activation()));
    assert_eq!(block(json!({})), Ok((false, Activation::Relu)));
    assert_eq!(block(json!({"feed_forward_proj": "gated-gelu"})), Ok((true, Activation::GeluNew)));
    assert_eq!(block(json!({"feed_forward_proj": "gated-silu"})), Ok((true, Activation::Silu)));
    // what the reference derives and writes beats what it derives it from
    let written = json!({"feed_forward_proj": "gated-gelu", "dense_act_fn": "relu", "is_gated_act": false});
    assert_eq!(block(written), Ok((false, Activation::Relu)));
    let scales = |fields| config(fields).map(|config| config.scales_outputs());
    assert_eq!(scales(json!({})), Ok(true));
    assert_eq!(scales(json!({"tie_word_embeddings": false})), Ok(false));
    assert_eq!(scales(json!({"tie_word_embeddings": null})), Ok(true));
    assert_eq!(scales(json!({"tie_word_embeddings": false, "scale_decoder_outputs": true})), Ok(true));
    assert_eq!(scales(json!({"tie_word_embeddings": true, "scale_decoder_outputs": false})), Ok(false));
    let sizes = config(json!({"hidden_size": 77, "num_hidden_layers": 3, "num_attention_heads": 5, "head_dim": 9}));
    let sizes = sizes.map(|config| (config.d_model, config.decoder_layers(), config.num_heads, config.d_kv));
    assert_eq!(sizes, Ok((77, 3, 5, 9)));
    let layers = config(json!({"num_layers": 3, "num_decoder_layers": 1})).map(|config| config.decoder_layers());
    assert_eq!(layers, Ok(1));
}

#[test]
fn configs_that_describe_no_model_say_why() {
    use serde_json::json;
    for (fields, expected) in [
        (json!({"feed_forward_proj": "gated-gelu-x"}), "`feed_forward_proj`: found `gated-gelu-x`"),
        (json!({"d_kv": 0}), "`d_kv` is 0"),
        (json!({"num_decoder_layers": 5000}), "`num_decoder_layers` is 5000"),
        (json!({"relative_attention_num_buckets": 3}), "`relative_attention_num_buckets` is 3, expected 4 to"),
        (
            json!({"relative_attention_num_buckets": 32, "relative_attention_max_distance": 16}),
            "`relative_attention_max_distance` is 16, expected more than half of `relative_attention_num_buckets`",
        ),
        (json!({"output_cross_attentions": "all"}), "`output_cross_attentions` is \"all\""),
        (json!({"layer_norm_epsilon": -1.0}), "`layer_norm_epsilon` is -1"),
        (json!({"num_heads": 268_435_456_u64, "d_kv": 268_435_456_u64}), "parameters"),
    ] {
        let error = config(fields).expect_err("no model");
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn embeddings_stand_for_tokens_in_both_parts() {
    for (on, device) in devices() {
        let case = Case::new("t5-silu");
        let model: T5ForConditionalGeneration = load(&case, &device);
        let given = inputs(&case, &device);
        let expected = run(&model, given.clone()).logits;
        let table = model.shared.weight.val();
        let embedded = |mut inputs: TextInputs| {
            let ids = inputs.input_ids.take().expect("tokens");
            inputs.inputs_embeds = Some(burn::tensor::module::embedding(table.clone(), ids));
            inputs
        };
        let source = embedded(given.source.clone().expect("given"));
        let inputs = Seq2SeqInputs::new(source).decoder(embedded(given.decoder.clone()));
        assert_eq!(bits(&run(&model, inputs).logits), bits(&expected), "{on}");

        // what the encoder gave may be handed in
        let encoder: T5EncoderModel = load(&case, &device);
        let source = given.source.clone().expect("given");
        let states = encoder.forward(source.clone(), &ForwardKwargs::new()).expect("runs").last_hidden_state;
        let encoded = Seq2SeqInputs::encoded(states).encoder_attention_mask(source.attention_mask);
        assert_eq!(bits(&run(&model, encoded.decoder(given.decoder)).logits), bits(&expected), "{on}");
    }
}

/// Distances do not change with padding in front, so that a text means the same wherever it is padded.
#[test]
fn padding_on_either_side_changes_nothing() {
    let device = device();
    let case = Case::new("t5");
    let model: T5ForConditionalGeneration = load(&case, &device);
    let text = |ids: [[i64; 7]; 1], mask: [[i64; 7]; 1]| {
        let mask = Tensor::<2, Int>::from_data(mask, &device);
        let source = TextInputs::new(Tensor::from_data(ids, &device)).attention_mask(mask);
        let decoder = Tensor::from_data([[0, 5, 9]], &device);
        run(&model, Seq2SeqInputs::new(source).decoder_input_ids(decoder)).logits
    };
    let right = text([[11, 12, 13, 14, 0, 0, 0]], [[1, 1, 1, 1, 0, 0, 0]]);
    let left = text([[0, 0, 0, 11, 12, 13, 14]], [[0, 0, 0, 1, 1, 1, 1]]);
    assert!(difference(&left, &right) < 1e-5);
    // and the decoder's own mask hides its padding
    let source = || TextInputs::new(Tensor::from_data([[11, 12, 13, 14]], &device));
    let decoded = |ids: Tensor<2, Int>, mask: Option<Tensor<2, Int>>| {
        let decoder = TextInputs::new(ids).attention_mask(mask);
        run(&model, Seq2SeqInputs::new(source()).decoder(decoder)).logits.slice_dim(1, 2..5)
    };
    let padded = |pad: i64| Tensor::from_data([[pad, pad, 0, 5, 9]], &device);
    let mask = || Some(Tensor::from_data([[0, 0, 1, 1, 1]], &device));
    assert_eq!(bits(&decoded(padded(3), mask())), bits(&decoded(padded(8), mask())));
    assert!(difference(&decoded(padded(3), None), &decoded(padded(8), None)) > 1e-3);
}

#[test]
fn a_cache_goes_on_where_the_decoder_was() {
    for (on, device) in devices() {
        let case = Case::new("t5-silu");
        let mut model: T5ForConditionalGeneration = load(&case, &device);
        for attention in ["sdpa", "eager"] {
            model.set_attn_implementation(attention).expect("built in");
            let kwargs = ForwardKwargs::new().output_attentions(true).output_hidden_states(true);
            let whole = model.forward(inputs(&case, &device), &kwargs).expect("runs");
            let all = inputs(&case, &device).decoder.input_ids.expect("given");
            let mut given = inputs(&case, &device).decoder_input_ids(all.clone().slice_dim(1, 0..2));
            let mut at = 0;
            for step in [2, 1, 3] {
                let part = all.clone().slice_dim(1, at..at + step);
                let mut output = model.forward(given.decoder_input_ids(part), &kwargs).expect("runs");
                let expected = whole.logits.clone().slice_dim(1, at..at + step);
                assert!(difference(&output.logits, &expected) < 1e-5, "{on}, {attention}, from {at}");
                for layer in 0..2 {
                    let rows = |weights: &Tensor<4>| weights.clone().slice_dim(2, at..at + step);
                    let weights = output.decoder_attentions.get(layer).expect("recorded");
                    let expected = rows(whole.decoder_attentions.get(layer).expect("recorded"));
                    assert!(difference(weights, &expected.slice_dim(3, 0..at + step)) < 1e-5);
                    let weights = output.cross_attentions.get(layer).expect("recorded");
                    assert!(difference(weights, &rows(whole.cross_attentions.get(layer).expect("recorded"))) < 1e-5);
                }
                at += step;
                let states = output.encoder_last_hidden_state.take().expect("there");
                let mask = case.inputs(&device).attention_mask;
                given = Seq2SeqInputs::encoded(states).encoder_attention_mask(mask).cache(output.cache.take());
            }
        }
    }
}

#[test]
fn inputs_that_do_not_fit_are_errors() {
    let device = device();
    let case = Case::new("t5");
    let model: T5ForConditionalGeneration = load(&case, &device);
    let refused = |inputs: Seq2SeqInputs| model.forward(inputs, &ForwardKwargs::new()).expect_err("refused");
    let given = || inputs(&case, &device);
    let tokens = |ids: [[i64; 2]; 2]| Tensor::<2, Int>::from_data(ids, &device);
    let message = |inputs| refused(inputs).to_string();
    assert!(message(given().decoder_input_ids(None)).contains("needs `decoder_input_ids`"));
    assert!(message(given().decoder_input_ids(tokens([[0, 99], [0, 1]]))).contains("holds 99"));
    assert!(message(Seq2SeqInputs { source: None, ..given() }).contains("needs `source`"));
    assert!(message(Seq2SeqInputs::new(TextInputs::default())).contains("needs `decoder_input_ids`"));
    let neither = Seq2SeqInputs::new(TextInputs::default()).decoder_input_ids(tokens([[0, 1], [0, 1]]));
    assert!(message(neither).contains("found neither"));
    let placed = TextInputs::new(tokens([[0, 1], [0, 1]])).position_ids(tokens([[0, 1], [0, 1]]));
    assert!(message(given().decoder(placed)).contains("takes no `decoder_position_ids`"));
    let wide = TextInputs::from_embeds(Tensor::zeros([2, 3, 7], &device));
    assert!(message(given().decoder(wide)).contains("`decoder_inputs_embeds` has shape [2, 3, 7]"));
    let single = TextInputs::new(Tensor::<2, Int>::from_data([[0, 1]], &device));
    assert!(matches!(refused(given().decoder(single)), ForwardError::Shape { name: "encoder_hidden_states", .. }));
    let mask = Tensor::<2, Int>::ones([2, 3], &device);
    let masked = Seq2SeqInputs::new(TextInputs::new(tokens([[3, 4], [5, 6]])).attention_mask(mask));
    assert!(message(masked.decoder_input_ids(tokens([[0, 1], [0, 1]]))).contains("`attention_mask`"));

    // a stack of layers inside a model has no embedding
    let stack = &model.encoder;
    let error = |inputs: TextInputs| stack.forward(inputs, &ForwardKwargs::new()).expect_err("refused").to_string();
    assert!(error(TextInputs::new(tokens([[3, 4], [5, 6]]))).contains("takes no `input_ids`"));
    assert!(error(TextInputs::default()).contains("needs `inputs_embeds`"));
    let half = Tensor::<3>::zeros([1, 2, 32], (&device, DType::F64));
    assert!(error(TextInputs::from_embeds(half)).contains("F64"));
    let looking = TextInputs::from_embeds(Tensor::zeros([1, 2, 32], &device))
        .encoder_hidden_states(Tensor::<3>::zeros([1, 2, 32], &device));
    assert!(error(looking).contains("takes no `encoder_hidden_states`"));
}

#[test]
fn a_stack_may_have_an_embedding_of_its_own() {
    let device = device();
    let config = T5Config { d_model: 16, num_heads: 2, d_kv: 8, d_ff: 20, num_layers: 2, ..T5Config::default() };
    let decoder = T5Stack::new(&T5Config { is_decoder: true, ..config.clone() }, true, &Init::new(&device));
    let ids = || Tensor::<2, Int>::from_data([[3, 4, 5]], &device);
    let kwargs = ForwardKwargs::new().output_attentions(true);
    // without an encoder nothing looks at one
    let output = decoder.forward(ids(), &kwargs).expect("runs");
    assert!(output.attentions.len() == 2 && !output.cross_attentions.is_recorded() && output.cache.is_some());
    let encoder = T5Stack::new(&config.of_encoder(), true, &Init::new(&device));
    let output = encoder.forward(ids(), &kwargs.use_cache(true)).expect("runs");
    assert!(output.attentions.len() == 2 && output.cache.is_none());
}

#[test]
fn sequences_are_classified_by_where_they_end() {
    let device = device();
    let case = Case::new("t5-classes");
    let model: T5ForSequenceClassification = load(&case, &device);
    let refused =
        |inputs: Seq2SeqInputs| model.forward(inputs, &ForwardKwargs::new()).expect_err("refused").to_string();
    let source = |ids: [[i64; 3]; 2]| Seq2SeqInputs::new(Tensor::<2, Int>::from_data(ids, &device));
    assert!(model.forward(source([[5, 6, 2], [7, 2, 0]]), &ForwardKwargs::new()).is_ok());
    assert!(refused(source([[5, 6, 2], [7, 8, 0]])).contains("token 2, which ends a text, [1, 0] times"));
    assert!(refused(source([[5, 2, 2], [7, 8, 2]])).contains("[2, 1] times"));
    let short =
        source([[5, 6, 2], [7, 2, 0]]).decoder_input_ids(Tensor::<2, Int>::from_data([[0, 5], [0, 7]], &device));
    assert!(refused(short).contains("`decoder_input_ids` has shape [2, 2]"));
    let embeds = Seq2SeqInputs::new(TextInputs::from_embeds(Tensor::zeros([1, 3, 24], &device)));
    assert!(refused(embeds).contains("needs `input_ids`"));
}

/// What the reference does in half precision: bounded values, f32 out of the feed-forward block.
#[cfg(feature = "flex")]
#[test]
fn half_precision_is_as_wide_as_in_the_reference() {
    let device = Device::flex();
    let case = Case::new("t5");
    for (dtype, wide, tolerance) in [(FloatDType::F16, DType::F32, 1e-2), (FloatDType::BF16, DType::BF16, 6e-2)] {
        let options = LoadOptions::new().dtype(dtype);
        let (mut model, _) =
            T5ForConditionalGeneration::from_pretrained_with(case.folder(), &device, &options).expect("loads");
        for attention in ["sdpa", "eager"] {
            model.set_attn_implementation(attention).expect("built in");
            let kwargs = ForwardKwargs::new().output_hidden_states(true).output_attentions(true);
            let output = model.forward(inputs(&case, &device), &kwargs).expect("runs");
            let narrow = DType::from(dtype);
            let dtypes =
                |states: &Captured<Tensor<3>>| -> Vec<DType> { states.iter().map(|(_, _, s)| s.dtype()).collect() };
            assert_eq!(dtypes(&output.encoder_hidden_states), [narrow, wide, narrow]);
            assert_eq!(dtypes(&output.decoder_hidden_states), [narrow, wide, wide, narrow]);
            assert!(output.encoder_attentions.iter().all(|(_, _, weights)| weights.dtype() == narrow));
            assert_eq!(output.logits.dtype(), narrow);
            let expected = Tensor::<3>::from_data(case.expected("outputs.safetensors")["logits"].clone(), &device);
            assert!(difference(&output.logits.clone().cast(DType::F32), &expected) < tolerance);
            let answer = model.generate(
                Seq2SeqInputs::new(case.inputs(&device)),
                &GenerationConfig::greedy(3),
                &ForwardKwargs::new(),
            );
            assert_eq!(answer.expect("generates").sequences.dims()[1], 4);
        }
    }
}

#[test]
fn every_step_of_an_answer_is_recorded() {
    for (on, device) in devices() {
        let case = Case::new("t5");
        let model: T5ForConditionalGeneration = load(&case, &device);
        let kwargs = ForwardKwargs::new()
            .output_hidden_states(true)
            .output_attentions(true)
            .output("encoder_attentions", [0])
            .expect("encoder_attentions", 2);
        let source = || Seq2SeqInputs::new(case.inputs(&device));
        for use_cache in [true, false] {
            let config = GenerationConfig { use_cache, ..GenerationConfig::greedy(5) };
            let answer = model.generate(source(), &config, &kwargs).expect("generates");
            assert_eq!((answer.steps.len(), answer.prompt_length), (5, 1), "{on}");
            // one call with all tokens that the decoder has read has the same in its rows
            let read = answer.sequences.clone().slice_dim(1, 0..5);
            let whole = model.forward(source().decoder_input_ids(read), &kwargs).expect("runs");
            for (at, step) in answer.steps.iter().enumerate() {
                let first = if use_cache { at } else { 0 };
                let rows = |states: &Tensor<3>| states.clone().slice_dim(1, first..at + 1);
                for layer in 0..4 {
                    let found = step.decoder_hidden_states.get(layer).expect("recorded");
                    let expected = rows(whole.decoder_hidden_states.get(layer).expect("recorded"));
                    assert!(difference(found, &expected) < 1e-4, "{on}, step {at}, layer {layer}");
                }
                for layer in 0..3 {
                    let found = step.cross_attentions.get(layer).expect("recorded");
                    let expected = whole.cross_attentions.get(layer).expect("recorded");
                    assert!(difference(found, &expected.clone().slice_dim(2, first..at + 1)) < 1e-5);
                    let [_, _, queries, keys] = step.decoder_attentions.get(layer).expect("recorded").dims();
                    assert_eq!((queries, keys), (at + 1 - first, at + 1));
                }
                assert!(step.logits.dims()[1] == 1 && step.cache.is_none());
                // the encoder ran once
                assert_eq!(step.encoder_hidden_states.is_recorded(), at == 0, "{on}, step {at}");
                assert_eq!(step.encoder_attentions.iter().count(), usize::from(at == 0), "{on}, step {at}");
                if at == 0 {
                    let [found, expected] =
                        [step, &whole].map(|of| bits(of.encoder_hidden_states.get(1).expect("recorded")));
                    assert_eq!(found, expected);
                }
            }
        }
    }
}

#[test]
fn an_answer_begins_with_the_start_token() {
    let device = device();
    let case = Case::new("t5");
    let model: T5ForConditionalGeneration = load(&case, &device);
    let source = || Seq2SeqInputs::new(case.inputs(&device));
    let tokens = |ids: [[i64; 2]; 2]| Tensor::<2, Int>::from_data(ids, &device);
    let answer = |inputs: Seq2SeqInputs, config: &GenerationConfig| {
        let answer = model.generate(inputs, config, &ForwardKwargs::new()).expect("generates");
        let [batch, length] = answer.sequences.dims();
        (
            answer.prompt_length,
            ids(&answer.sequences).chunks_exact(length).map(<[i64]>::to_vec).collect::<Vec<_>>(),
            batch,
        )
    };
    let config = GenerationConfig::greedy(2);
    // in front of all, or of none
    let (length, rows, _) = answer(source().decoder_input_ids(tokens([[7, 8], [9, 8]])), &config);
    assert!(length == 3 && rows[0][..3] == [0, 7, 8] && rows[1][..3] == [0, 9, 8]);
    let (length, rows, _) = answer(source().decoder_input_ids(tokens([[7, 8], [0, 8]])), &config);
    assert!(length == 2 && rows[0][..2] == [7, 8]);
    // as if it had been there, with and without a mask
    let begun = Tensor::<2, Int>::from_data([[0, 7, 8], [0, 9, 8]], &device);
    let expected = answer(source().decoder_input_ids(begun), &config);
    let masked = TextInputs::new(tokens([[7, 8], [9, 8]])).attention_mask(Tensor::<2, Int>::ones([2, 2], &device));
    assert_eq!(answer(source().decoder(masked), &config), expected);
    // another one by the generation config
    let other = GenerationConfig { decoder_start_token_id: Some(5), ..config.clone() };
    let (length, rows, batch) = answer(source(), &other);
    assert!(length == 1 && batch == 2 && rows.iter().all(|row| row[0] == 5));

    let mut without: T5Config = model.config().clone();
    without.decoder_start_token_id = None;
    let model = T5ForConditionalGeneration::new(&without, &Init::new(&device));
    let refused = |inputs| model.generate(inputs, &config, &ForwardKwargs::new()).expect_err("refused");
    assert!(matches!(refused(source()), GenerateError::NoStartToken));
    assert!(matches!(refused(source().labels(tokens([[7, 8], [9, 8]]))), GenerateError::Argument("labels")));
    assert!(matches!(refused(Seq2SeqInputs { source: None, ..source() }), GenerateError::NoStartToken));
    let error = model.forward(source().labels(tokens([[7, 8], [9, 8]])), &ForwardKwargs::new()).expect_err("refused");
    assert!(error.to_string().contains("needs `decoder_start_token_id` in the config"), "{error}");
}

/// An answer from what the encoder gave is the one from what it read; sampling repeats by its seed.
#[test]
fn answers_of_the_same_are_the_same() {
    let device = device();
    let case = Case::new("t5-silu");
    let model: T5ForConditionalGeneration = load(&case, &device);
    let encoder: T5EncoderModel = load(&case, &device);
    let source = case.inputs(&device);
    let states = encoder.forward(source.clone(), &ForwardKwargs::new()).expect("runs").last_hidden_state;
    let encoded = || Seq2SeqInputs::encoded(states.clone()).encoder_attention_mask(source.attention_mask.clone());
    for config in [GenerationConfig::greedy(6), GenerationConfig::sample(6, 3)] {
        let answer = |inputs: Seq2SeqInputs| {
            ids(&model.generate(inputs, &config, &ForwardKwargs::new()).expect("generates").sequences)
        };
        assert_eq!(answer(encoded()), answer(Seq2SeqInputs::new(source.clone())));
    }
    // what an encoder that does not run would record is an error
    let kwargs = ForwardKwargs::new().output("encoder_attentions", true);
    let error = model.generate(encoded(), &GenerationConfig::greedy(1), &kwargs).expect_err("nothing to record");
    assert!(error.to_string().contains("encoder_attentions"), "{error}");
}

/// The one weight gets the gradients of all of its uses, and stays one.
#[cfg(feature = "autodiff")]
#[test]
fn a_shared_embedding_gets_every_gradient() {
    use burn::module::Param;
    let device = device().autodiff();
    let case = Case::new("t5-labels");
    let model: T5ForConditionalGeneration = load(&case, &device);
    let labels = tensors(&case.folder().join("inputs.safetensors"))["labels"].clone();
    let loss = |model: &T5ForConditionalGeneration| {
        let source = TextInputs { labels: None, ..plain_inputs(&case, &device) };
        let labels = Tensor::<2, Int>::from_data(labels.clone(), (&device, DType::I64));
        let kwargs = ForwardKwargs::new().use_cache(false);
        model.forward(Seq2SeqInputs::new(source).labels(labels), &kwargs).expect("runs").loss.expect("labels are given")
    };
    let weight = model.shared.weight.val();
    let gradient = weight.grad(&loss(&model).backward()).expect("a parameter");
    let source = tensors(&case.folder().join("inputs.safetensors"))["input_ids"].clone();
    let read: Vec<i64> = source.iter::<i64>().collect();
    let only_written = (3..40).find(|id| !read.contains(id)).expect("one is not read");
    for row in [read[0] as usize, 0, only_written as usize] {
        let nudged = |by: f64| {
            let mut model: T5ForConditionalGeneration = load(&case, &device);
            let moved = weight.clone().detach().inner();
            let value = moved.clone().slice([row..row + 1, 5..6]) + by;
            let moved = moved.slice_assign([row..row + 1, 5..6], value);
            model.shared.weight = Param::from_tensor(Tensor::from_data(moved.into_data(), &device));
            loss(&model).into_scalar::<f32>()
        };
        let step = 1e-2;
        let numeric = (nudged(step) - nudged(-step)) / (2.0 * step as f32);
        let exact: f32 = gradient.clone().slice([row..row + 1, 5..6]).into_scalar();
        assert!((numeric - exact).abs() < 2e-3 + 0.03 * exact.abs(), "row {row}: {numeric} and {exact}");
    }
}

/// The encoder's inputs of a case whose labels are the decoder's.
#[cfg(feature = "autodiff")]
fn plain_inputs(case: &Case, device: &Device) -> TextInputs {
    let mut all = tensors(&case.folder().join("inputs.safetensors"));
    let mut take = |name: &str| all.remove(name).map(|data| Tensor::<2, Int>::from_data(data, (device, DType::I64)));
    TextInputs::new(take("input_ids").expect("tokens")).attention_mask(take("attention_mask"))
}
