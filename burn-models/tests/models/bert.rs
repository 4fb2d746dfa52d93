//! What is special in BERT: classes within classes of like names, a head that shares the table of embeddings, names of old
//! checkpoints, a decoder that looks at an encoder.

use crate::support::{Case, TOLERANCE, assert_close, bits, device, devices, tensors, weights};
use burn::module::Module;
use burn::tensor::{DType, Device, FloatDType, Int, Tensor, TensorData};
use burn_models::bert::*;
use burn_models::generation::GenerationConfig;
use burn_models::layers::{LayerContext, Tokens};
use burn_models::{ForwardError, Labels, TextInputs};
use patching_core::patch::{PatchSet, ReplacementClass};
use patching_core::prelude::*;
use patching_core::weights::{LoadError, LoadOptions, LoadReport};
use safetensors::tensor::{Dtype, TensorView};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn ints<const D: usize>(data: impl Into<TensorData>, device: &Device) -> Tensor<D, Int> {
    Tensor::from_data(data.into(), (device, DType::I64))
}

/// The inputs of a case, those of an encoder among them.
fn inputs(case: &Case, device: &Device) -> TextInputs {
    let mut all = tensors(&case.weights().join("inputs.safetensors"));
    let mut take = |name: &str| all.remove(name).map(|data| ints::<2>(data, device));
    let inputs = TextInputs::new(take("input_ids").expect("tokens")).attention_mask(take("attention_mask"));
    let inputs = inputs.token_type_ids(take("token_type_ids")).encoder_attention_mask(take("encoder_attention_mask"));
    let states = all.remove("encoder_hidden_states").map(|data| Tensor::from_data(data, (device, DType::F32)));
    inputs.encoder_hidden_states(states)
}

/// The tensors of a checkpoint: shape and bytes, floats of 32 bits.
type Stored = BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>;

fn stored(folder: &Path) -> Stored {
    let bytes = weights(folder);
    let file = safetensors::SafeTensors::deserialize(&bytes).expect("valid");
    let tensor = |view: &TensorView<'_>| (view.dtype(), view.shape().to_vec(), view.data().to_vec());
    file.tensors().into_iter().map(|(key, view)| (key, tensor(&view))).collect()
}

/// A folder with the config of a case, changed, and these tensors.
fn folder(case: &Case, tensors: &Stored, config: impl FnOnce(&mut serde_json::Value)) -> TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    let text = std::fs::read_to_string(case.folder().join("config.json")).expect("a config");
    let mut value = serde_json::from_str(&text).expect("JSON");
    config(&mut value);
    std::fs::write(dir.path().join("config.json"), value.to_string()).expect("written");
    let views = tensors.iter().map(|(key, (dtype, shape, bytes))| {
        (key.as_str(), TensorView::new(*dtype, shape.clone(), bytes).expect("a tensor"))
    });
    let metadata = [("format".to_owned(), "pt".to_owned())].into();
    let file = safetensors::serialize(views, Some(metadata)).expect("valid");
    std::fs::write(dir.path().join("model.safetensors"), file).expect("written");
    dir
}

/// What was loaded is saved as it was.
#[track_caller]
fn saves_equal_bytes<M: PreTrainedModel>(model: &M, from: &Path, what: &str) {
    let saved = tempfile::tempdir().expect("a folder");
    model.save_pretrained(saved.path()).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(weights(saved.path()) == weights(from), "{what}: other bytes");
}

fn load<M: PreTrainedModel>(folder: &Path) -> Result<(M, LoadReport), LoadError> {
    M::from_pretrained_with(folder, &device(), &LoadOptions::new())
}

/// Attention of its own kind, which stands in for attention to the own sequence only.
#[derive(Module, Debug)]
struct Halved {
    original: Slot<BertSelfAttention>,
}

#[replaces(BertSelfAttention)]
impl Halved {
    fn new(config: &BertConfig, layer_idx: usize, init: &Init) -> Self {
        Self { original: BertSelfAttention::slot(config, layer_idx, init) }
    }

    fn forward(&self, hidden_states: Tensor<3>, context: &mut LayerContext) -> (Tensor<3>, Option<Tensor<4>>) {
        let (attended, weights) = self.original.forward(hidden_states, context);
        (attended / 2.0, weights)
    }
}

fn patches(key: &str, replacement: ReplacementClass) -> PatchSet {
    PatchSet::new([(key, replacement)]).expect("valid")
}

/// SPEC 4.4: the pattern matches the block around the attention, and the attention to an encoder, too.
#[test]
fn a_pattern_that_matches_too_much_is_an_error_that_proposes_a_narrower_key() {
    let load = |case: &Case, key: &str| {
        let options = LoadOptions::new().patches(patches(key, class::<Halved>()));
        BertLMHeadModel::from_pretrained_with(case.folder(), &device(), &options)
    };
    let case = Case::new("bert-decoder");
    let error = load(&case, ".*Attention").expect_err("too wide").to_string();
    for part in ["`.*Attention`", "`BertAttention`", "`BertCrossAttention`", "`Halved`", "key is `BertSelfAttention`"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let (model, report) = load(&case, "BertSelf.*Attention|^BertSelfAttention$").expect("narrow enough");
    assert_eq!(report.patches.replaced.len(), 2);
    let output = model.forward(inputs(&case, &device()), &ForwardKwargs::new().output_attentions(true)).expect("runs");
    assert_eq!((output.attentions.len(), output.cross_attentions.len()), (2, 2));
    let expected = &case.expected("outputs.safetensors")["attentions.0"];
    assert_close("the first layer's weights", output.attentions.at(0).expect("there"), expected, TOLERANCE);
}

/// Paths are the checkpoint's keys, also where Rust has no field of that name.
#[test]
fn paths_of_slots_are_those_of_the_checkpoint() {
    let model: BertLMHeadModel = Case::new("bert-decoder").load(&device());
    let paths: Vec<String> = patching_core::class::all_slots(&model).into_iter().map(|slot| slot.path).collect();
    for path in [
        "bert.embeddings",
        "bert.encoder.layer.0.attention",
        "bert.encoder.layer.0.attention.self",
        "bert.encoder.layer.1.crossattention.self",
        "bert.encoder.layer.1.crossattention.output",
        "cls.predictions.transform",
    ] {
        assert!(paths.iter().any(|found| found == path), "{path}: {paths:?}");
    }
}

/// Embeddings whose table is somewhere else than in the original.
#[derive(Module, Debug)]
struct DoubledEmbeddings {
    inner: Inner,
}

#[derive(Module, Debug)]
struct Inner {
    word_embeddings: burn::nn::Embedding,
}

#[replaces(BertEmbeddings)]
impl DoubledEmbeddings {
    fn new(config: &BertConfig, init: &Init) -> Self {
        let (size, std) = (config.hidden_size, config.initializer_range);
        let word_embeddings = burn_models::layers::new_embedding(config.vocab_size, size, std, init.device());
        Self { inner: Inner { word_embeddings } }
    }

    fn forward(&self, tokens: Tokens, _types: Option<Tensor<2, Int>>, _positions: Tensor<2, Int>) -> Tensor<3> {
        tokens.embed(&self.inner.word_embeddings) * 2.0
    }
}

/// Embeddings that no head can share.
#[derive(Module, Debug)]
struct NoTable {
    width: burn::module::Param<Tensor<1>>,
}

#[replaces(BertEmbeddings)]
impl NoTable {
    fn new(config: &BertConfig, init: &Init) -> Self {
        Self { width: burn::module::Initializer::Ones.init([config.hidden_size], init.device()) }
    }

    fn forward(&self, tokens: Tokens, _types: Option<Tensor<2, Int>>, _positions: Tensor<2, Int>) -> Tensor<3> {
        match tokens {
            Tokens::Ids(ids) => ids.float().unsqueeze_dim::<3>(2) * self.width.val().unsqueeze(),
            Tokens::Embeds(embeds) => embeds,
        }
    }
}

#[test]
fn a_tied_head_shares_the_table_of_replaced_embeddings() {
    let device = device();
    let config = BertConfig::from_pretrained(Case::new("bert-mlm").folder()).expect("a config");
    let build = |config: &BertConfig, replacement| {
        BertForMaskedLM::from_config_with(config, &device, &patches("BertEmbeddings", replacement)).expect("built").0
    };
    let run = |model: &BertForMaskedLM| model.forward(ints::<2>([[5, 6, 7]], &device), &ForwardKwargs::new());

    let model = build(&config, class::<DoubledEmbeddings>());
    assert_eq!(model.bert.word_embeddings().expect("found").dims(), [99, 32]);
    assert_eq!(run(&model).expect("runs").logits.dims(), [1, 3, 99]);

    let model = build(&config, class::<NoTable>());
    assert!(model.bert.word_embeddings().is_none());
    let error = run(&model).expect_err("nothing to share").to_string();
    assert!(error.contains("`bert` needs `word_embeddings` in what replaces `BertEmbeddings`"), "{error}");
    let untied = BertConfig { tie_word_embeddings: false, ..config };
    assert_eq!(run(&build(&untied, class::<NoTable>())).expect("runs").logits.dims(), [1, 3, 99]);
}

/// The names of the first release, and buffers that later ones had.
#[test]
fn old_checkpoints_load_and_are_saved_with_their_names() {
    let case = Case::new("bert-mlm");
    let mut old: Stored = stored(case.folder())
        .into_iter()
        .map(|(key, tensor)| {
            let key = key.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta");
            (key, tensor)
        })
        .collect();
    let dir = folder(&case, &old, |_| {});
    let (model, report) = load::<BertForMaskedLM>(dir.path()).expect("old names");
    assert!(report.missing.is_empty() && report.unexpected.is_empty(), "{report}");
    let kwargs = ForwardKwargs::new();
    let run = |model: &BertForMaskedLM| bits(&model.forward(inputs(&case, &device()), &kwargs).expect("runs").logits);
    let expected = run(&case.load(&device()));
    assert_eq!(run(&model), expected);
    saves_equal_bytes(&model, dir.path(), "old names");

    // the buffer is no parameter: reported, and gone when the model is saved
    let positions: Vec<u8> = (0..24_i64).flat_map(i64::to_le_bytes).collect();
    old.insert("bert.embeddings.position_ids".to_owned(), (Dtype::I64, vec![1, 24], positions));
    let dir = folder(&case, &old, |_| {});
    let (model, report) = load::<BertForMaskedLM>(dir.path()).expect("a buffer more");
    assert_eq!(report.unexpected, ["bert.embeddings.position_ids"]);
    assert_eq!(run(&model), expected);

    // a model that was not loaded from old names has none
    let saved = tempfile::tempdir().expect("a folder");
    let fresh = BertForMaskedLM::from_config(model.config(), &device()).expect("built");
    fresh.save_pretrained(saved.path()).expect("saves");
    assert_eq!(stored(saved.path()).keys().collect::<Vec<_>>(), stored(case.folder()).keys().collect::<Vec<_>>());
}

/// Whichever of the tied tensors a checkpoint has, it loads, computes the same and is saved as it was.
#[test]
fn tied_tensors_may_be_there_twice_or_under_either_name() {
    const TABLE: &str = "bert.embeddings.word_embeddings.weight";
    const WEIGHT: &str = "cls.predictions.decoder.weight";
    const BIAS: &str = "cls.predictions.decoder.bias";
    let case = Case::new("bert-mlm");
    let kwargs = ForwardKwargs::new();
    let run = |model: &BertForMaskedLM| bits(&model.forward(inputs(&case, &device()), &kwargs).expect("runs").logits);
    let expected = run(&case.load(&device()));
    let all = {
        let mut all = stored(case.folder());
        all.insert(WEIGHT.to_owned(), all[TABLE].clone());
        all.insert(BIAS.to_owned(), all["cls.predictions.bias"].clone());
        all
    };
    for without in [
        &[][..],
        &[WEIGHT],
        &[BIAS],
        &[WEIGHT, BIAS],
        &[TABLE],
        &["cls.predictions.bias"],
        &[TABLE, "cls.predictions.bias"],
    ] {
        let tensors = all.clone().into_iter().filter(|(key, _)| !without.contains(&key.as_str())).collect();
        let dir = folder(&case, &tensors, |_| {});
        let (model, report) =
            load::<BertForMaskedLM>(dir.path()).unwrap_or_else(|error| panic!("{without:?}: {error}"));
        assert!(report.is_exact(), "{without:?}: {report}");
        assert_eq!(run(&model), expected, "{without:?}");
        saves_equal_bytes(&model, dir.path(), &format!("{without:?}"));
    }

    // not tied: both are parameters, and the bias of the head itself is not used
    let dir = folder(&case, &all, |config| config["tie_word_embeddings"] = false.into());
    let (model, report) = load::<BertForMaskedLM>(dir.path()).expect("not tied");
    assert!(report.is_exact() && report.tied.is_empty(), "{report}");
    assert_close(
        "not tied",
        &model.forward(inputs(&case, &device()), &kwargs).expect("runs").logits,
        &case.expected("outputs.safetensors")["logits"],
        TOLERANCE,
    );
    saves_equal_bytes(&model, dir.path(), "not tied");

    // different values contradict a config that ties
    let mut contrary = all;
    contrary.get_mut(BIAS).expect("there").2[0] ^= 1;
    let dir = folder(&case, &contrary, |_| {});
    let error = load::<BertForMaskedLM>(dir.path()).expect_err("different").to_string();
    assert!(error.contains("`cls.predictions.decoder.bias` differs from `cls.predictions.bias`"), "{error}");
}

/// One token at a time: positions go on, and what the encoder gave is projected once.
#[test]
fn steps_with_a_cache_are_the_whole_at_once() {
    for (on, device) in devices() {
        let case = Case::new("bert-decoder");
        let model: BertLMHeadModel = case.load(&device);
        let all = inputs(&case, &device);
        let ids = all.input_ids.clone().expect("tokens");
        let kwargs = ForwardKwargs::new().use_cache(true).output_attentions(true);
        let whole = model.forward(all.clone(), &kwargs).expect("runs");
        let mut cache = None;
        for step in 0..ids.dims()[1] {
            let one = TextInputs::new(ids.clone().slice_dim(1, step..step + 1)).cache(cache.take());
            // later steps do without the encoder's output, but not without its mask
            let states = all.encoder_hidden_states.clone().filter(|_| step == 0 || step == 4);
            let one = one.encoder_hidden_states(states).encoder_attention_mask(all.encoder_attention_mask.clone());
            let output = model.forward(one, &kwargs).expect("runs");
            let expected = whole.logits.clone().slice_dim(1, step..step + 1).to_data();
            assert_close(&format!("step {step} on {on}"), &output.logits, &expected, TOLERANCE);
            assert_eq!(output.cross_attentions.at(-1).expect("there").dims(), [2, 4, 1, 8]);
            cache = output.cache;
        }
        let cache = cache.expect("kept");
        assert_eq!((cache.sequence_length(), cache.source_length()), (10, Some(8)));
    }
}

/// A decoder with attention to an encoder does without one; what only follows `attentions` is left out then.
#[test]
fn a_decoder_without_its_encoder() {
    let case = Case::new("bert-decoder");
    let model: BertLMHeadModel = case.load(&device());
    let ids = || inputs(&case, &device()).input_ids.expect("tokens");
    let output = model.forward(ids(), &ForwardKwargs::new().output_attentions(true)).expect("runs");
    assert_eq!((output.attentions.len(), output.cross_attentions.len()), (2, 0));
    let error = model.forward(ids(), &ForwardKwargs::new().output_cross_attentions(true)).expect_err("asked for");
    assert!(matches!(error, ForwardError::Capture(_)), "{error}");
    let generated = model.generate(ids(), &GenerationConfig::greedy(3), &ForwardKwargs::new()).expect("generates");
    assert_eq!(generated.sequences.dims(), [2, 13]);
}

#[test]
fn a_masked_language_model_of_a_decoder_has_no_field_for_attention_to_an_encoder() {
    let device = device();
    let config = BertConfig {
        is_decoder: true,
        add_cross_attention: true,
        ..BertConfig::from_pretrained(Case::new("bert-mlm").folder()).expect("a config")
    };
    let model = BertForMaskedLM::from_config(&config, &device).expect("built");
    let inputs =
        || TextInputs::new(ints([[5, 6, 7]], &device)).encoder_hidden_states(Tensor::<3>::ones([1, 4, 32], &device));
    let output = model.forward(inputs(), &ForwardKwargs::new().output_attentions(true)).expect("runs");
    assert_eq!(output.attentions.len(), 2);
    let asked = ForwardKwargs::new().output_cross_attentions(true);
    let error = model.forward(inputs(), &asked).expect_err("no field").to_string();
    assert!(error.contains("cross_attentions"), "{error}");
}

#[test]
fn token_types_are_zero_unless_given() {
    let case = Case::new("bert");
    let device = device();
    let model: BertModel = case.load(&device);
    let run = |types: Option<Tensor<2, Int>>| {
        let inputs = inputs(&case, &device).token_type_ids(types);
        bits(&model.forward(inputs, &ForwardKwargs::new()).expect("runs").last_hidden_state)
    };
    assert_eq!(run(None), run(Some(Tensor::zeros([2, 10], (&device, DType::I64)))));
    assert_ne!(run(None), run(Some(Tensor::ones([2, 10], (&device, DType::I64)))));
}

#[test]
fn wrong_inputs_are_errors_that_say_what_fits() {
    let device = device();
    let model: BertModel = Case::new("bert").load(&device);
    let ids = || TextInputs::new(ints([[5, 6, 7]], &device));
    let states = |size| Tensor::<3>::ones([1, 4, size], &device);
    let long = Tensor::<2, Int>::ones([1, 25], (&device, DType::I64));
    let cache = burn_models::layers::Cache::new([None, None]);
    for (inputs, expected) in [
        (TextInputs::new(ints([[99]], &device)), "`input_ids` holds 99, expected 0 to 98"),
        (TextInputs::new(long), "have 25 tokens with those seen before, expected at most 24"),
        (ids().position_ids(ints::<2>([[0, 1, 24]], &device)), "`position_ids` holds 24, expected 0 to 23"),
        (ids().token_type_ids(ints::<2>([[0, 1, 2]], &device)), "`token_type_ids` holds 2, expected 0 to 1"),
        (ids().token_type_ids(ints::<2>([[0, 1]], &device)), "`token_type_ids` has shape [1, 2], expected [1, 3]"),
        (ids().attention_mask(ints::<2>([[1, 1]], &device)), "`attention_mask` has shape [1, 2]"),
        (ids().encoder_hidden_states(states(32)), "takes no `encoder_hidden_states`: it has no cross-attention"),
        (ids().encoder_attention_mask(ints::<2>([[1]], &device)), "takes no `encoder_attention_mask`"),
        (ids().cache(cache), "takes no `cache`: it is no decoder"),
        (TextInputs::from_embeds(states(31)), "`inputs_embeds` has shape [1, 4, 31], expected [batch, seq, 32]"),
        (TextInputs::default(), "found neither"),
    ] {
        let error = model.forward(inputs, &ForwardKwargs::new()).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
    let decoder: BertLMHeadModel = Case::new("bert-decoder").load(&device);
    let error = decoder.forward(ids().encoder_hidden_states(states(31)), &ForwardKwargs::new()).expect_err("size");
    assert!(error.to_string().contains("expected [1, source, 32]"), "{error}");
}

#[test]
fn labels_of_another_kind_are_errors() {
    let device = device();
    let ids = || TextInputs::new(ints([[5, 6, 7]], &device));
    let spans = || Labels::Spans { start: ints([1], &device), end: ints([2], &device) };
    let tokens = || Labels::Tokens(ints([[5, 6, 7]], &device));
    let kwargs = ForwardKwargs::new();
    let model: BertForMaskedLM = Case::new("bert-mlm").load(&device);
    let error = model.forward(ids().labels(spans()), &kwargs).expect_err("spans").to_string();
    assert_eq!(error, "labels are spans of shape [1], expected tokens of shape [batch, seq]");
    let model: BertForPreTraining = Case::new("bert-pretraining").load(&device);
    let error = model.forward(ids().labels(tokens()), &kwargs).expect_err("tokens alone").to_string();
    assert!(error.contains("expected tokens of shape [batch, seq] and classes of shape [batch]"), "{error}");
    let model: BertForQuestionAnswering = Case::new("bert-answers").load(&device);
    let error = model.forward(ids().labels(tokens()), &kwargs).expect_err("tokens").to_string();
    assert!(error.contains("expected spans"), "{error}");
    let two = Labels::Spans { start: ints([1, 1], &device), end: ints([2, 2], &device) };
    let error = model.forward(ids().labels(two), &kwargs).expect_err("two spans").to_string();
    assert_eq!(error, "`labels` has shape [2], expected [1]");

    let mut config = model.config().clone();
    config.general.set_num_labels(3);
    let model = BertForQuestionAnswering::from_config(&config, &device).expect("built");
    let error = model.forward(ids(), &kwargs).expect_err("three").to_string();
    assert!(error.starts_with("`num_labels` is 3, expected 2"), "{error}");
}

#[test]
fn configs_that_describe_no_model_are_refused() {
    let refused = |fields: serde_json::Value| {
        let config: BertConfig = serde_json::from_value(fields).expect("readable");
        config.validate().expect_err("refused").to_string()
    };
    let json = |text: &str| serde_json::from_str(text).expect("JSON");
    for (fields, expected) in [
        (
            r#"{"num_attention_heads": 7}"#,
            "`hidden_size` is 768, expected a multiple of `num_attention_heads`, which is 7",
        ),
        (r#"{"num_attention_heads": 0}"#, "`num_attention_heads` is 0"),
        (r#"{"type_vocab_size": 0}"#, "`type_vocab_size` is 0"),
        (r#"{"layer_norm_eps": -1}"#, "`layer_norm_eps` is -1"),
        (r#"{"add_cross_attention": true}"#, "`is_decoder` is missing, which `add_cross_attention` needs"),
        (r#"{"position_embedding_type": "relative_key"}"#, "`position_embedding_type` is \"relative_key\""),
        (r#"{"num_hidden_layers": 5000}"#, "`num_hidden_layers` is 5000"),
        (r#"{"hidden_size": 268435456, "num_attention_heads": 1}"#, "parameters"),
        (r#"{"output_attentions": "some"}"#, "`output_attentions` is \"some\""),
    ] {
        let error = refused(json(fields));
        assert!(error.contains(expected), "{error}");
    }
    // what is not known is kept, and `null` is what the file says
    let text = r#"{"pad_token_id": null, "position_embedding_type": "absolute", "gradient_checkpointing": false}"#;
    let config: BertConfig = serde_json::from_str(text).expect("readable");
    assert!(config.validate().is_ok());
    let written = serde_json::to_value(&config).expect("JSON");
    assert_eq!(written["pad_token_id"], serde_json::Value::Null);
    assert_eq!(written["gradient_checkpointing"], false);
    assert_eq!(written["model_type"], "bert");
}

#[derive(Deserialize)]
struct Sentences {
    sentences: Vec<String>,
    input_ids: Vec<Vec<i64>>,
    attention_mask: Vec<Vec<i64>>,
    embeddings: Vec<Vec<f32>>,
    hidden_norms: Vec<f32>,
    attention_first_token: Vec<f32>,
    pooler_norms: Vec<f32>,
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    (dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()) as f32
}

/// Embeddings of sentences by a real checkpoint: `BURN_MODELS_REAL=folder cargo test -- --ignored minilm`.
#[test]
#[ignore = "needs the checkpoint"]
fn minilm() {
    let folder = std::env::var_os("BURN_MODELS_REAL").expect("BURN_MODELS_REAL names the folder of checkpoints");
    let folder = PathBuf::from(folder).join("minilm");
    let record = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/minilm.json");
    let record: Sentences = serde_json::from_str(&std::fs::read_to_string(record).expect("a record")).expect("valid");
    let rows = |rows: &[Vec<i64>], device: &Device| {
        ints::<1>(rows.concat().as_slice(), device).reshape([rows.len() as i32, -1])
    };
    for (on, device) in devices() {
        let options = LoadOptions::new().dtype(FloatDType::F32);
        let (model, report) = BertModel::from_pretrained_with(&folder, &device, &options).expect("loads");
        assert!(report.missing.is_empty(), "{report}");
        let mask: Tensor<2, Int> = rows(&record.attention_mask, &device);
        let inputs = TextInputs::new(rows(&record.input_ids, &device)).attention_mask(mask.clone());
        let kwargs = ForwardKwargs::new().output_hidden_states(true).output_attentions(true);
        let output = model.forward(inputs, &kwargs).expect("runs");

        let mask = mask.float().unsqueeze_dim::<3>(2);
        let [batch, _, hidden] = output.last_hidden_state.dims();
        let sums = (output.last_hidden_state.clone() * mask.clone()).sum_dim(1).reshape([batch, hidden]);
        let embeddings = sums / mask.sum_dim(1).reshape([batch, 1]);
        let found: Vec<f32> = embeddings.to_data().iter::<f32>().collect();
        for ((sentence, found), expected) in record.sentences.iter().zip(found.chunks(hidden)).zip(&record.embeddings) {
            let cosine = cosine(found, expected);
            assert!(cosine > 0.99999, "{sentence} on {on}: {cosine}");
            let largest = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(largest < 1e-4, "{sentence} on {on}: differs by {largest}");
        }
        let near = |found: f32, expected: f32| (found / expected - 1.0).abs() < 1e-4;
        assert_eq!(output.hidden_states.len(), record.hidden_norms.len());
        for (index, _, state) in output.hidden_states.iter() {
            let norm: f32 = state.clone().slice_dim(0, 0..1).square().sum().sqrt().into_scalar();
            assert!(near(norm, record.hidden_norms[index]), "hidden state {index} on {on}: {norm}");
        }
        let [.., seq] = output.attentions.at(0).expect("there").dims();
        for (index, _, weights) in output.attentions.iter() {
            let weight: f32 = weights.clone().slice([0..1, 0..1, seq - 1..seq, 0..1]).into_scalar();
            let expected = record.attention_first_token[index];
            assert!((weight - expected).abs() < 1e-5, "attention {index} on {on}: {weight} and {expected}");
        }
        let pooled = output.pooler_output.expect("a pooler").square().sum_dim(1).sqrt();
        for (norm, expected) in pooled.to_data().iter::<f32>().zip(&record.pooler_norms) {
            assert!(near(norm, *expected), "pooled on {on}: {norm} and {expected}");
        }
    }
}
