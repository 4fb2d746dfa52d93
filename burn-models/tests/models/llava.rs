//! LLaVA: which hidden states of the tower are asked for, and what becomes of them.

use crate::support::{
    Case, TOLERANCE, assert_close, bits, device, devices, floats, ids, ints, keys, renamed, tensors, weights,
};
use burn::module::Module;
use burn::tensor::{Device, FloatDType, Int, Tensor};
use burn_models::clip::{CLIPEncoderConfig, CLIPEncoderLayer};
use burn_models::generation::{GenerationConfig, generate_with};
use burn_models::layers::LayerContext;
use burn_models::llava::{LlavaConfig, LlavaForConditionalGeneration, LlavaInputs, LlavaModel, LlavaWithImages};
use burn_models::models::{CausalLM, FeatureLayers, Model};
use burn_models::{ImageOutputs, TextInputs};
use patching_core::patch::PatchSet;
use patching_core::prelude::*;
use patching_core::weights::{CheckpointLayout, LoadOptions, SaveOptions};
use serde_json::{Value, json};
use std::cell::Cell;
use std::ops::ControlFlow;

fn case() -> Case {
    Case::new("llava")
}

fn load(device: &Device) -> LlavaForConditionalGeneration {
    case().load(device)
}

fn text(case: &Case, device: &Device) -> TextInputs {
    let all = tensors(&case.weights().join("inputs.safetensors"));
    TextInputs::new(ints(&all["input_ids"], device)).attention_mask(ints(&all["attention_mask"], device))
}

fn pixels(case: &Case, device: &Device) -> Tensor<4> {
    floats(&tensors(&case.weights().join("inputs.safetensors"))["pixel_values"], device)
}

fn inputs(case: &Case, device: &Device) -> LlavaInputs {
    LlavaInputs::new(text(case, device), pixels(case, device))
}

/// What the features of all images should be, from all hidden states of the tower.
fn expected_features(model: &LlavaModel, images: Tensor<4>, layers: &[isize], whole: bool) -> Tensor<3> {
    let output = model.vision_tower.forward(images, &ForwardKwargs::new().output_hidden_states(true)).expect("runs");
    let states = layers.iter().map(|layer| {
        let state = output.hidden_states.at(*layer).expect("recorded").clone();
        let [_, positions, _] = state.dims();
        if whole { state } else { state.slice_dim(1, 1..positions) }
    });
    model.multi_modal_projector.forward(Tensor::cat(states.collect(), 2))
}

#[test]
fn an_explicit_layer_or_strategy_beats_the_config() {
    for (on, device) in devices() {
        let (case, model) = (case(), load(&device).model);
        let images = || pixels(&case, &device);
        let features = |layer: Option<isize>, name: Option<&str>| {
            let layer = layer.map(FeatureLayers::One);
            let output = model.get_image_features(images(), layer, name.map(str::to_owned), &ForwardKwargs::new());
            bits(&output.expect("runs").pooler_output)
        };
        let expected = |layer: isize, whole: bool| bits(&expected_features(&model, images(), &[layer], whole));
        assert_eq!(features(None, None), expected(-2, false), "{on}");
        assert_eq!(features(None, Some("default")), expected(-2, false), "{on}");
        assert_eq!(features(None, Some("full")), expected(-2, true), "{on}");
        for layer in -4..4 {
            assert_eq!(features(Some(layer), None), expected(layer, false), "{on}, layer {layer}");
        }
    }
}

#[test]
fn several_layers_lie_side_by_side_in_their_order() {
    let (device, case) = (device(), Case::new("llava-layers"));
    let model = case.load::<LlavaForConditionalGeneration>(&device).model;
    let images = || pixels(&case, &device);
    for layers in [[-3, 0, 2], [2, 2, -1], [3, 1, 0]] {
        let found = model.get_image_features(images(), Some(layers.into()), None, &ForwardKwargs::new());
        let expected = expected_features(&model, images(), &layers, true);
        assert_eq!(bits(&found.expect("runs").pooler_output), bits(&expected), "{layers:?}");
    }
}

#[test]
fn layers_and_strategies_that_there_are_not_are_errors() {
    let (device, case) = (device(), case());
    let model = load(&device).model;
    let error = |layer: Option<FeatureLayers>, name: Option<&str>| {
        let name = name.map(str::to_owned);
        let output = model.get_image_features(pixels(&case, &device), layer, name, &ForwardKwargs::new());
        output.map(drop).expect_err("there is none").to_string()
    };
    let message = error(None, Some("most"));
    assert!(message.contains("most") && message.contains("default") && message.contains("full"), "{message}");
    for layer in [4, -5] {
        let message = error(Some(layer.into()), None);
        assert!(message.contains("hidden_states") && message.contains(&layer.to_string()), "{message}");
    }
    let message = error(Some([0, 1].into()), None);
    assert!(message.contains("vision_feature_layer"), "{message}");
    let error = model.forward(inputs(&case, &device).vision_feature_select_strategy("most"), &ForwardKwargs::new());
    assert!(error.is_err());
}

thread_local! {
    static LAYERS: Cell<usize> = const { Cell::new(0) };
}

/// A layer of the tower that counts its calls.
#[derive(Module, Debug)]
struct CountingLayer {
    original: Slot<CLIPEncoderLayer>,
}

#[replaces(CLIPEncoderLayer)]
impl CountingLayer {
    fn new(config: &CLIPEncoderConfig, layer_idx: usize, init: &Init) -> Self {
        Self { original: CLIPEncoderLayer::slot(config, layer_idx, init) }
    }

    fn forward(&self, hidden_states: Tensor<3>, context: &mut LayerContext) -> Tensor<3> {
        LAYERS.set(LAYERS.get() + 1);
        self.original.forward(hidden_states, context)
    }
}

fn counting(device: &Device) -> LlavaForConditionalGeneration {
    let patches = PatchSet::new([("CLIPEncoderLayer", class::<CountingLayer>())]).expect("valid");
    let options = LoadOptions::new().patches(patches);
    LlavaForConditionalGeneration::from_pretrained_with(case().folder(), device, &options).expect("loads").0
}

/// How many layers of the tower run for features of `layer`, and what is kept.
fn layers_run(layer: isize, kwargs: &ForwardKwargs) -> (usize, ImageOutputs) {
    let (device, case) = (device(), case());
    let model = counting(&device);
    LAYERS.set(0);
    let output = model.get_image_features(pixels(&case, &device), Some(layer.into()), None, kwargs);
    (LAYERS.get(), output.expect("runs"))
}

#[test]
fn the_tower_runs_as_far_as_it_must() {
    // the input of the first layer is known when that is called
    for (layer, expected) in [(0, 1), (1, 1), (-3, 1), (2, 2), (-2, 2), (3, 3), (-1, 3)] {
        let (run, output) = layers_run(layer, &ForwardKwargs::new());
        assert_eq!(run, expected, "layer {layer}");
        assert!(output.last_hidden_state.is_none(), "layer {layer}");
        assert!(!output.hidden_states.is_recorded() && !output.attentions.is_recorded(), "layer {layer}");
    }
    let (device, case) = (device(), case());
    let model = counting(&device);
    LAYERS.set(0);
    model.forward(inputs(&case, &device), &ForwardKwargs::new()).expect("runs");
    assert_eq!(LAYERS.get(), 2, "the last layer is not needed");
}

#[test]
fn what_a_caller_asks_for_is_kept_and_nothing_else() {
    let key = |name: &str| format!("image_outputs.{name}");
    let (run, output) = layers_run(-2, &ForwardKwargs::new().output(key("hidden_states"), [0, -1]));
    assert_eq!(run, 3);
    let kept: Vec<usize> = output.hidden_states.iter().map(|(position, ..)| position).collect();
    assert_eq!((output.hidden_states.len(), kept), (4, vec![0, 3]), "not the state that features are made of");
    assert!(output.last_hidden_state.is_some() && !output.attentions.is_recorded());

    let (run, output) = layers_run(-2, &ForwardKwargs::new().output(key("attentions"), [1]));
    assert_eq!(run, 3);
    assert_eq!((output.attentions.len(), output.attentions.iter().len()), (3, 1));
    assert!(!output.hidden_states.is_recorded());
}

/// How recorded values are kept is not how they are computed with.
#[test]
fn keeping_values_in_another_type_changes_no_feature() {
    let kwargs = || ForwardKwargs::new().output_hidden_states(true);
    let (_, plain) = layers_run(-2, &kwargs());
    let (_, cast) = layers_run(-2, &kwargs().cast(FloatDType::F64));
    assert_eq!(bits(&plain.pooler_output), bits(&cast.pooler_output));
    for (_, path, state) in cast.hidden_states.iter() {
        assert_eq!(state.dtype(), FloatDType::F64.into(), "{path}");
    }
    let (_, cast) = layers_run(-2, &ForwardKwargs::new().cast(FloatDType::F64));
    assert_eq!(bits(&plain.pooler_output), bits(&cast.pooler_output));
}

#[cfg(feature = "autodiff")]
#[test]
fn features_stay_on_the_graph_whatever_is_recorded() {
    let device = device().autodiff();
    let (case, model) = (case(), load(&device));
    let gradient = |kwargs: &ForwardKwargs| {
        let labels = text(&case, &device).input_ids.expect("tokens");
        let mut inputs = inputs(&case, &device);
        inputs.text = inputs.text.labels(labels);
        let loss = model.forward(inputs, kwargs).expect("runs").loss.expect("labels were given");
        let weight = model.model.vision_tower.pre_layrnorm.gamma.val();
        bits(&weight.grad(&loss.backward()).expect("on the graph"))
    };
    let plain = gradient(&ForwardKwargs::new());
    assert!(plain.iter().any(|bits| *bits != 0));
    assert_eq!(plain, gradient(&ForwardKwargs::new().output_hidden_states(true)));
    assert_eq!(plain, gradient(&ForwardKwargs::new().output_hidden_states(true).detach(true)));
    assert_eq!(plain, gradient(&ForwardKwargs::new().detach(true)));
}

#[test]
fn there_is_one_token_for_each_feature() {
    let (device, case) = (device(), case());
    let model = load(&device);
    let mut few = inputs(&case, &device);
    few.image = Some(pixels(&case, &device).slice_dim(0, 0..1).into());
    let error = model.forward(few, &ForwardKwargs::new()).map(drop).expect_err("too many tokens").to_string();
    assert_eq!(error, "the texts have 18 image tokens, expected 9: one for each feature of the images");
    let whole = inputs(&case, &device).vision_feature_select_strategy("full");
    let error = model.forward(whole, &ForwardKwargs::new()).map(drop).expect_err("too few tokens").to_string();
    assert!(error.contains("18") && error.contains("20"), "{error}");
    let none = LlavaInputs::new(Tensor::<2, Int>::full([1, 3], 5, &device), pixels(&case, &device));
    assert!(model.forward(none, &ForwardKwargs::new()).is_err());
}

#[test]
fn images_take_their_places_in_order() {
    let (device, case) = (device(), case());
    let model = load(&device).model;
    let kwargs = ForwardKwargs::new().output("hidden_states", [0]);
    let output = model.forward(inputs(&case, &device), &kwargs).expect("runs");
    let features = output.image_hidden_states().expect("there are images").clone();
    assert_eq!(features.dims(), [2, 9, 32]);
    let read = output.hidden_states.get(0).expect("recorded").clone();
    let tokens = ids(&text(&case, &device).input_ids.expect("tokens"));
    for row in 0..2 {
        let first = tokens[row * 16..(row + 1) * 16].iter().position(|token| *token == 97).expect("an image");
        let found = read.clone().slice([row..row + 1, first..first + 9]);
        assert_eq!(bits(&found), bits(&features.clone().slice_dim(0, row..row + 1)), "row {row}");
    }

    // embeddings in place of tokens
    let embeds = model.language_model.embed_tokens.forward(text(&case, &device).input_ids.expect("tokens"));
    let mut embedded = inputs(&case, &device);
    embedded.text = TextInputs { input_ids: None, inputs_embeds: Some(embeds), ..embedded.text };
    let again = model.forward(embedded, &kwargs).expect("runs");
    assert_eq!(bits(&again.last_hidden_state), bits(&output.last_hidden_state));
}

#[test]
fn texts_alone_are_read_by_the_language_model() {
    let (device, case) = (device(), case());
    let model = load(&device);
    let output = model.forward(text(&case, &device), &ForwardKwargs::new().output_hidden_states(true)).expect("runs");
    assert!(output.image_outputs.is_none() && output.image_hidden_states().is_none());
    let alone = model.model.language_model.forward(text(&case, &device), &ForwardKwargs::new()).expect("runs");
    assert_eq!(bits(output.hidden_states.at(-1).expect("recorded")), bits(&alone.last_hidden_state));
    // what says nothing without images
    let layer = LlavaInputs::from(text(&case, &device)).vision_feature_layer(-1_isize);
    let error = model.forward(layer, &ForwardKwargs::new()).map(drop).expect_err("no images").to_string();
    assert_eq!(error, "`llava` takes no `vision_feature_layer` without `pixel_values`");
    // what nothing can record
    let kwargs = ForwardKwargs::new().output("image_outputs.attentions", true);
    assert!(model.forward(text(&case, &device), &kwargs).is_err());
    assert!(model.generate(text(&case, &device), &GenerationConfig::greedy(2), &kwargs).is_err());
}

#[test]
fn a_plan_has_both_parts() {
    let model = load(&device());
    let plan = model.capture_plan(&ForwardKwargs::new().output_attentions([0])).expect("can be met");
    let kept: Vec<(&str, &str)> = plan
        .keys()
        .iter()
        .flat_map(|key| key.values().filter(|value| value.is_kept).map(|value| (key.key(), value.path)))
        .collect();
    let expected = [
        ("attentions", "model.language_model.layers.0.self_attn"),
        ("image_outputs.attentions", "model.vision_tower.encoder.layers.0.self_attn"),
    ];
    assert_eq!(kept, expected);
}

#[test]
fn images_are_seen_at_the_first_step() {
    let (device, case) = (device(), case());
    let model = counting(&device);
    let kwargs = ForwardKwargs::new().output_attentions([-1]).output("image_outputs.hidden_states", [0]);
    let expected = case.expected("generate.safetensors");
    for (use_cache, runs) in [(true, 1), (false, 8)] {
        let config = GenerationConfig { use_cache, ..GenerationConfig::greedy(8) };
        LAYERS.set(0);
        let output = model.generate(inputs(&case, &device), &config, &kwargs).expect("runs");
        assert_eq!(ids(&output.sequences), expected["sequences"].iter::<i64>().collect::<Vec<_>>());
        assert_eq!(LAYERS.get(), 3 * runs, "use_cache {use_cache}");
        assert_eq!(output.steps.len(), 8);
        for (index, step) in output.steps.iter().enumerate() {
            assert!(step.attentions.is_recorded());
            let images = step.image_outputs.as_ref().map(|images| images.hidden_states.iter().len());
            assert_eq!(images, (index == 0 || !use_cache).then_some(1), "step {index}, use_cache {use_cache}");
        }
    }

    let (seeing, prompt) = LlavaWithImages::new(&model, inputs(&case, &device));
    let mut steps = 0;
    let output = generate_with(&seeing, prompt, &GenerationConfig::greedy(8), &ForwardKwargs::new(), |step| {
        steps += 1;
        if step.index == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(output.expect("runs").new_tokens[0].len(), 3);
    assert_eq!(steps, 3);
    assert_eq!(model.pad_token_id(), Some(0));
}

/// Files of the first release have the tower's prefix; some have the model's own names.
#[test]
fn checkpoints_of_every_release_load_and_are_saved_as_they_were() {
    let (device, case) = (device(), case());
    let older = |key: &str| key.replace("vision_tower.", "vision_tower.vision_model.");
    let own = |key: &str| {
        if let Some(rest) = key.strip_prefix("language_model.model.") {
            format!("model.language_model.{rest}")
        } else if let Some(rest) = key.strip_prefix("language_model.") {
            rest.to_owned()
        } else {
            format!("model.{key}")
        }
    };
    let renamings: [&dyn Fn(&str) -> String; 3] = [&older, &own, &str::to_owned];
    let expected = case.expected("outputs.safetensors");
    for rename in renamings {
        let dir = renamed(case.folder(), |key| Some(rename(key)), &[]);
        let loaded = LlavaForConditionalGeneration::from_pretrained_with(dir.path(), &device, &LoadOptions::new());
        let (model, report) = loaded.expect("loads");
        assert!(report.missing.is_empty() && report.unexpected.is_empty(), "{report}");
        let output = model.forward(inputs(&case, &device), &ForwardKwargs::new()).expect("runs");
        assert_close("logits", &output.logits, &expected["logits"], TOLERANCE);
        let saved = tempfile::tempdir().expect("a folder");
        model.save_pretrained(saved.path()).expect("saves");
        assert!(weights(saved.path()) == weights(dir.path()), "other bytes than {:?}", &keys(dir.path())[..3]);

        let base = LlavaModel::from_pretrained(dir.path(), &device).expect("loads");
        let output = base.forward(inputs(&case, &device), &ForwardKwargs::new().output_hidden_states([-1]));
        let output = output.expect("runs");
        assert_close("state", &output.last_hidden_state, &expected["hidden_states.2"], TOLERANCE);
    }
}

#[test]
fn a_fresh_model_is_saved_under_the_reference_s_names() {
    for name in ["llava", "llava-layers"] {
        let case = Case::new(name);
        let config = LlavaConfig::from_pretrained(case.folder()).expect("valid");
        let model = LlavaForConditionalGeneration::new(&config, &Init::new(&device()));
        let saved = tempfile::tempdir().expect("a folder");
        let published = SaveOptions::new().layout(CheckpointLayout::Published);
        model.save_pretrained_with(saved.path(), &published).expect("saves");
        assert_eq!(keys(saved.path()), keys(case.folder()), "{name}");
        LlavaForConditionalGeneration::from_pretrained(saved.path(), &device()).expect("loads");
    }
}

#[test]
fn configs_of_every_kind() {
    let config = |json: Value| LlavaConfig::from_json(&json.to_string()).map_err(|error| error.to_string());
    let plain = config(json!({"model_type": "llava", "image_token_id": 7, "pad_token_id": 3})).expect("valid");
    assert_eq!(plain.image_token_index, 7);
    assert_eq!((plain.vision_config.hidden_size, plain.vision_config.grid().patches()), (1024, 576));
    assert_eq!(plain.vision_feature_layer, FeatureLayers::One(-2));
    // a part that is there has the defaults of its own class
    let part = config(json!({"vision_config": {"model_type": "clip_vision_model"}})).expect("valid");
    assert_eq!(part.vision_config.hidden_size, 768);
    let several = config(json!({"vision_feature_layer": [-2, 5], "vision_feature_select_strategy": "full"}));
    let several = several.expect("valid");
    assert_eq!(several.feature_size(), 2048);
    let written = serde_json::to_value(&several).expect("a value of JSON");
    assert_eq!(config(written).expect("valid"), several);
    let tied = config(json!({"text_config": {"tie_word_embeddings": true}})).expect("valid");
    assert!(tied.ties_head());

    for (json, expected) in [
        (
            json!({"vision_config": {"model_type": "siglip_vision_model"}}),
            "`vision_config` is of model type `siglip_vision_model`, supported is `clip_vision_model`",
        ),
        (
            json!({"text_config": {"model_type": "mistral"}}),
            "`text_config` is of model type `mistral`, supported is `llama`",
        ),
        (json!({"vision_feature_select_strategy": "most"}), "expected default or full"),
        (json!({"vision_feature_layer": 25}), "expected -25 to 24"),
        (json!({"vision_feature_layer": [-26]}), "expected -25 to 24"),
        (json!({"vision_feature_layer": []}), "vision_feature_layer"),
    ] {
        let error = config(json.clone()).map(drop).expect_err("not to be built");
        assert!(error.contains(expected), "{json}: {error}");
    }
}

#[test]
fn both_parts_change_their_attention() {
    let (device, case) = (device(), case());
    let mut model = load(&device);
    let run = |model: &LlavaForConditionalGeneration| {
        model.forward(inputs(&case, &device), &ForwardKwargs::new()).expect("runs").logits
    };
    let before = run(&model);
    model.set_attn_implementation("eager").expect("built in");
    assert!(crate::support::difference(&before, &run(&model)) < 1e-5);
    for part in [
        model.model.vision_tower.config().general.attn_implementation.clone(),
        model.model.language_model.config().general.attn_implementation.clone(),
    ] {
        assert_eq!(part.as_deref(), Some("eager"));
    }
    let error = model.set_attn_implementation("egaer").expect_err("unknown").to_string();
    assert!(error.contains("did you mean `eager`?"), "{error}");
}
