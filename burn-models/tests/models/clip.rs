//! CLIP: two towers, one request, and configs of every age.

use crate::support::{
    Case, TOLERANCE, assert_close, bits, device, devices, flat, floats, ints, keys, recorded, renamed, tensors,
};
use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_models::clip::{
    CLIPConfig, CLIPModel, CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection, CLIPVisionConfig,
    CLIPVisionModel,
};
use burn_models::config::TokenIds;
use burn_models::models::Model;
use burn_models::{PixelInputs, TextImageInputs, TextInputs};
use patching_core::capture::Returned;
use patching_core::prelude::*;
use patching_core::weights::{CheckpointLayout, LoadOptions, SaveOptions};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn case() -> Case {
    Case::new("clip")
}

fn text(case: &Case, device: &Device) -> TextInputs {
    let all = tensors(&case.weights().join("inputs.safetensors"));
    TextInputs::new(ints(&all["input_ids"], device)).attention_mask(ints(&all["attention_mask"], device))
}

fn pixels(case: &Case, device: &Device) -> Tensor<4> {
    floats(&tensors(&case.weights().join("inputs.safetensors"))["pixel_values"], device)
}

fn inputs(case: &Case, device: &Device) -> TextImageInputs {
    TextImageInputs::new(text(case, device), pixels(case, device))
}

fn load(device: &Device) -> CLIPModel {
    case().load(device)
}

fn everything() -> ForwardKwargs {
    ForwardKwargs::new().output_hidden_states(true).output_attentions(true)
}

/// The number of values of each key that are there.
fn counts(output: &impl ModelOutput) -> BTreeMap<String, usize> {
    let recorded = recorded(&output.to_tuple());
    recorded.into_iter().map(|(key, (_, present))| (key, present.len())).collect()
}

fn counted(expected: &[(&str, usize)]) -> BTreeMap<String, usize> {
    expected.iter().map(|(key, count)| ((*key).to_owned(), *count)).collect()
}

#[test]
fn a_flag_reaches_both_towers_or_by_its_prefix_one() {
    let (model, case, device) = (load(&device()), case(), device());
    let run = |kwargs: &ForwardKwargs| counts(&model.forward(inputs(&case, &device), kwargs).expect("runs"));
    let (text, vision) = ("text_model_output", "vision_model_output");
    let key = |tower: &str, key: &str| format!("{tower}.{key}");
    let both = |name| [(key(text, name), 3), (key(vision, name), 3)].into_iter().collect::<BTreeMap<_, _>>();

    assert_eq!(run(&ForwardKwargs::new()), BTreeMap::new());
    assert_eq!(run(&ForwardKwargs::new().output_hidden_states(true)), both("hidden_states"));
    let one = ForwardKwargs::new().output("vision_model_output.attentions", [-1]);
    assert_eq!(run(&one), counted(&[("vision_model_output.attentions", 1)]));
    let all_but_one = ForwardKwargs::new().output_attentions(true).output("text_model_output.attentions", false);
    assert_eq!(run(&all_but_one), counted(&[("vision_model_output.attentions", 2)]));

    let error =
        model.forward(inputs(&case, &device), &ForwardKwargs::new().output("text_model_output.atentions", true));
    let message = error.map(drop).expect_err("no such key").to_string();
    assert!(message.contains("text_model_output.atentions") && message.contains("attentions"), "{message}");
}

#[test]
fn a_config_asks_for_both_towers_or_for_one() {
    let (device, case) = (device(), case());
    let mut config = CLIPConfig::from_pretrained(case.folder()).expect("valid");
    config.general.set_output("attentions", [0]);
    config.vision_config.general.set_output("hidden_states", true);
    let model = CLIPModel::new(&config, &Init::new(&device));
    let output = model.forward(inputs(&case, &device), &ForwardKwargs::new()).expect("runs");
    let expected = [
        ("text_model_output.attentions", 1),
        ("vision_model_output.attentions", 1),
        ("vision_model_output.hidden_states", 3),
    ];
    assert_eq!(counts(&output), counted(&expected));
}

#[test]
fn a_plan_says_where_values_come_from() {
    let plan = load(&device()).capture_plan(&ForwardKwargs::new().output_attentions([0])).expect("can be met");
    let paths: Vec<(&str, &str)> = plan
        .keys()
        .iter()
        .flat_map(|key| key.values().filter(|value| value.is_kept).map(|value| (key.key(), value.path)))
        .collect();
    let expected = [
        ("text_model_output.attentions", "text_model.encoder.layers.0.self_attn"),
        ("vision_model_output.attentions", "vision_model.encoder.layers.0.self_attn"),
    ];
    assert_eq!(paths, expected);
}

/// A tower that was run alone, is run inside the whole, and once more alone, records itself once each time.
#[test]
fn entries_never_double() {
    let (model, case, device) = (load(&device()), case(), device());
    let alone = || model.text_model.forward(text(&case, &device), &everything()).expect("runs");
    let expected = counted(&[("attentions", 2), ("hidden_states", 3)]);
    let first = alone();
    assert_eq!(counts(&first), expected);
    let whole = model.forward(inputs(&case, &device), &everything()).expect("runs");
    assert_eq!(counts(&whole.text_model_output), expected);
    assert_eq!(counts(&whole.vision_model_output), expected);
    assert_eq!(counts(&alone()), expected);
    for (position, _, state) in first.hidden_states.iter() {
        let inside = whole.text_model_output.hidden_states.get(position).expect("recorded");
        assert_eq!(bits(state), bits(inside), "hidden state {position}");
    }
}

/// Two models around one tower, which runs twice in one call.
#[test]
fn a_shared_tower_is_recorded_by_each_of_its_calls() {
    let (model, case, device) = (load(&device()), case(), device());
    let whole = model.forward(inputs(&case, &device), &everything()).expect("runs");
    let features = model.get_text_features(text(&case, &device), &everything()).expect("runs");
    let again =
        model.get_text_features(text(&case, &device), &everything().output("text_model_output.attentions", [1]));
    let again = again.expect("runs");
    assert_eq!(counts(&features), counted(&[("attentions", 2), ("hidden_states", 3)]));
    assert_eq!(counts(&again), counted(&[("attentions", 1), ("hidden_states", 3)]));
    let embeds = whole.text_model_output.pooler_output.expect("projected");
    assert_eq!(bits(&embeds), bits(&features.pooler_output.expect("projected")));
    let error = model
        .get_text_features(text(&case, &device), &ForwardKwargs::new().output("vision_model_output.attentions", true));
    assert!(error.is_err(), "the vision tower does not run");
}

#[test]
fn only_the_outermost_call_makes_a_tuple() {
    let (device, case) = (device(), case());
    let mut config = CLIPConfig::from_pretrained(case.folder()).expect("valid");
    config.text_config.general.return_dict = Some(false);
    config.general.return_dict = Some(false);
    let model = CLIPModel::new(&config, &Init::new(&device));
    let kwargs = ForwardKwargs::new();
    let output = model.forward(inputs(&case, &device), &kwargs).expect("runs");
    let Returned::Tuple(tuple) = model.returned(output, &kwargs) else { panic!("the config asks for a tuple") };
    assert_eq!(tuple.len(), 6);
}

#[test]
fn pairs_agree_with_the_reference() {
    for (on, device) in devices() {
        let (case, model) = (case(), load(&device));
        let expected = tensors(&case.folder().join("pairs.safetensors"));
        let images = pixels(&case, &device).slice_dim(0, 0..2);
        let pair = TextImageInputs::new(text(&case, &device), images.clone()).return_loss(true);
        let output = model.forward(pair, &ForwardKwargs::new()).expect("runs");
        assert_close(&format!("loss on {on}"), &output.loss.expect("asked for"), &expected["loss"], TOLERANCE);
        let features = model.get_image_features(images, &ForwardKwargs::new()).expect("runs");
        let pooled = features.pooler_output.expect("projected");
        assert_close(&format!("images on {on}"), &pooled, &expected["image_features"], TOLERANCE);
        let features = model.get_text_features(text(&case, &device), &ForwardKwargs::new()).expect("runs");
        let pooled = features.pooler_output.expect("projected");
        assert_close(&format!("texts on {on}"), &pooled, &expected["text_features"], TOLERANCE);
    }
}

#[cfg(feature = "autodiff")]
#[test]
fn gradients_agree_with_the_reference() {
    let device = device().autodiff();
    let (case, model) = (case(), load(&device));
    let expected = tensors(&case.folder().join("pairs.safetensors"));
    let images = pixels(&case, &device).slice_dim(0, 0..2);
    let pair = TextImageInputs::new(text(&case, &device), images).return_loss(true);
    let gradients = model.forward(pair, &everything()).expect("runs").loss.expect("asked for").backward();
    let scale = model.logit_scale.val().grad(&gradients).expect("a parameter");
    assert_close("scale", &scale, &expected["gradient.logit_scale"], TOLERANCE);
    let projection = model.text_projection.weight.val().grad(&gradients).expect("a parameter").transpose();
    assert_close("projection", &projection, &expected["gradient.text_projection"], TOLERANCE);
    let positions = burn_models::layers::matrix_of(&model.vision_model, "position_embedding.weight");
    let positions = positions.expect("a parameter").grad(&gradients).expect("on the graph");
    assert_close("positions", &positions, &expected["gradient.position_embedding"], TOLERANCE);
}

#[test]
fn a_loss_needs_as_many_texts_as_images() {
    let (model, case, device) = (load(&device()), case(), device());
    let error = model.forward(inputs(&case, &device).return_loss(true), &ForwardKwargs::new());
    let message = error.map(drop).expect_err("2 and 3").to_string();
    assert_eq!(
        message,
        "`logits` has shape [2, 3], expected [pairs, pairs], as many of the one as of the other for `return_loss`"
    );
}

/// The numbers of a tower inside the whole are those of the tower loaded out of the whole's checkpoint.
#[test]
fn towers_load_out_of_a_whole_checkpoint() {
    for (on, device) in devices() {
        let case = case();
        let expected = case.expected("outputs.safetensors");
        let check = |found: BTreeMap<String, TensorData>, prefix: &str| {
            for (key, value) in found.iter().filter(|(key, _)| *key != "pooler_output") {
                let name = format!("{prefix}{key} on {on}");
                crate::support::assert_close_data(&name, value, &expected[&format!("{prefix}{key}")], TOLERANCE);
            }
            assert_eq!(found.len(), 7, "{prefix} on {on}");
        };
        let options = LoadOptions::new();
        let (model, report) = CLIPTextModel::from_pretrained_with(case.folder(), &device, &options).expect("loads");
        assert!(report.unexpected.iter().all(|key| !key.to_string().contains("text_model")), "{report}");
        let output = model.forward(text(&case, &device), &everything()).expect("runs");
        check(flat(&output.to_tuple()), "text_model_output.");
        let model = CLIPVisionModel::from_pretrained(case.folder(), &device).expect("loads");
        let output = model.forward(pixels(&case, &device), &everything()).expect("runs");
        check(flat(&output.to_tuple()), "vision_model_output.");

        // and what was loaded so is saved as a checkpoint of its own
        let saved = tempfile::tempdir().expect("a folder");
        model.save_pretrained(saved.path()).expect("saves");
        let again = CLIPVisionModel::from_pretrained(saved.path(), &device).expect("loads");
        let again = again.forward(pixels(&case, &device), &everything()).expect("runs");
        assert_eq!(bits(&again.last_hidden_state), bits(&output.last_hidden_state));
    }
}

#[test]
fn a_projection_of_another_size_is_said() {
    // the tower's own config says 512, the whole projects to 24
    let error = CLIPTextModelWithProjection::from_pretrained(case().folder(), &device()).map(drop);
    let message = error.expect_err("does not fit").to_string();
    assert!(message.contains("text_projection.weight"), "{message}");
}

#[test]
fn buffers_of_older_checkpoints_are_no_parameters() {
    let positions = TensorData::from([[0_i64, 1, 2]]);
    for (name, key) in [("clip-text/prefixed", "text_model."), ("clip-text", "")] {
        let folder = case().folder().parent().expect("a folder").join(name);
        let key = format!("{key}embeddings.position_ids");
        let dir = renamed(&folder, |key| Some(key.to_owned()), &[(&key, positions.clone())]);
        let loaded = CLIPTextModel::from_pretrained_with(dir.path(), &device(), &LoadOptions::new());
        let (_, report) = loaded.expect("loads");
        assert_eq!(report.unexpected.len(), 1, "{report}");
        assert!(report.missing.is_empty(), "{report}");
    }
}

#[test]
fn older_configs_say_parts_twice() {
    let config = |json: Value| CLIPConfig::from_json(&json.to_string());
    let older = config(json!({
        "model_type": "clip",
        "projection_dim": 24,
        "text_config": {"hidden_size": 64, "num_hidden_layers": 3, "kept": 1},
        "text_config_dict": {"hidden_size": 32},
        "vision_config": null,
        "vision_config_dict": {"image_size": 12, "patch_size": 4, "torch_dtype": "float16"},
    }))
    .expect("valid");
    // the older spelling says all of a part, defaults included, and wins
    assert_eq!((older.text_config.hidden_size, older.text_config.num_hidden_layers), (32, 12));
    assert_eq!(older.text_config.general.extra["kept"], 1);
    assert_eq!(older.vision_config.grid().trained(), [3, 3]);
    assert_eq!(older.vision_config.general.dtype.as_deref(), Some("float16"));
    let written = serde_json::to_string(&older).expect("a value of JSON");
    assert!(!written.contains("config_dict"), "{written}");
    assert_eq!(CLIPConfig::from_json(&written).expect("valid"), older);

    let nothing = config(json!({"model_type": "clip", "text_config_dict": null, "text_config": null}));
    assert_eq!(nothing.expect("valid"), CLIPConfig::default());
    let error = config(json!({"model_type": "clip", "text_config_dict": {"hidden_size": "wide"}}));
    let message = error.map(drop).expect_err("no number").to_string();
    assert!(message.contains("text_config_dict") && message.contains("hidden_size"), "{message}");
}

#[test]
fn configs_that_cannot_be_built_say_why() {
    let vision = |change: &dyn Fn(&mut CLIPVisionConfig)| {
        let mut config = CLIPVisionConfig::default();
        change(&mut config);
        config.validate().map_err(|error| error.to_string())
    };
    assert_eq!(vision(&|_| {}), Ok(()));
    let error = vision(&|config| config.num_attention_heads = 7).expect_err("not a multiple");
    assert_eq!(error, "`hidden_size` is 768, expected a multiple of `num_attention_heads`, which is 7");
    let error = vision(&|config| config.patch_size = 300.into()).expect_err("too large");
    assert_eq!(error, "`patch_size` is 300, expected 1 to 224, the `image_size`");
    let error = vision(&|config| config.patch_size = 0.into()).expect_err("zero");
    assert!(error.contains("patch_size"), "{error}");
    let error = vision(&|config| config.image_size = [0, 224].into()).expect_err("zero");
    assert!(error.contains("image_size"), "{error}");

    let endless = CLIPTextConfig { eos_token_id: None, ..CLIPTextConfig::default() };
    assert!(endless.validate().expect_err("no end").to_string().contains("eos_token_id"));
    let narrow = CLIPConfig { projection_dim: 0, ..CLIPConfig::default() };
    assert!(narrow.validate().expect_err("zero").to_string().contains("projection_dim"));
    let mut inner = CLIPConfig::default();
    inner.text_config.vocab_size = 0;
    assert!(inner.validate().expect_err("zero").to_string().contains("vocab_size"));
}

#[test]
fn images_of_other_sizes_stretch_positions() {
    let case = Case::new("clip-vision");
    let expected = case.expected("wide.safetensors");
    for (on, device) in devices() {
        let model: CLIPVisionModel = case.load(&device);
        for (key, pixels) in expected.iter().filter(|(key, _)| key.ends_with("pixel_values")) {
            let size = key.trim_end_matches(".pixel_values");
            let images = || PixelInputs::new(floats(pixels, &device));
            let output = model.forward(images().interpolate_pos_encoding(true), &everything()).expect("runs");
            let name = format!("{size} on {on}");
            assert_close(&name, &output.last_hidden_state, &expected[&format!("{size}.last_hidden_state")], TOLERANCE);
            assert_eq!(model.forward(images(), &ForwardKwargs::new()).is_ok(), size == "12x12", "{name}");
        }
    }
}

#[test]
fn inputs_that_do_not_fit_say_so() {
    let device = device();
    let vision: CLIPVisionModel = Case::new("clip-vision").load(&device);
    let run = |images: PixelInputs| {
        vision.forward(images, &ForwardKwargs::new()).map(drop).map_err(|error| error.to_string())
    };
    let zeros = |shape: [usize; 4]| PixelInputs::new(Tensor::zeros(shape, &device));
    let error = run(zeros([1, 3, 16, 12])).expect_err("too high");
    assert_eq!(
        error,
        "`pixel_values` has shape [1, 3, 16, 12], expected [batch, 3, 12, 12] (or any size with `interpolate_pos_encoding`)"
    );
    assert!(run(zeros([1, 1, 12, 12])).is_err() && run(zeros([0, 3, 12, 12])).is_err());
    let error = run(zeros([1, 3, 3, 12]).interpolate_pos_encoding(true)).expect_err("no patch");
    assert!(error.ends_with("[batch, 3, at least 4, at least 4]"), "{error}");
    let hidden = Tensor::<2, Int>::zeros([1, 9], &device);
    let error = run(zeros([1, 3, 12, 12]).bool_masked_pos(hidden)).expect_err("sees all");
    assert!(error.starts_with("`clip_vision_model` takes no `bool_masked_pos`"), "{error}");
    assert!(run(zeros([1, 3, 12, 12]).labels(Tensor::<1, Int>::zeros([1], &device))).is_err());

    let text: CLIPTextModel = Case::new("clip-text").load(&device);
    let run =
        |inputs: TextInputs| text.forward(inputs, &ForwardKwargs::new()).map(drop).map_err(|error| error.to_string());
    let ids = |length: usize| TextInputs::new(Tensor::zeros([1, length], &device));
    assert_eq!(run(ids(14)), Ok(()));
    let error = run(ids(15)).expect_err("too long");
    assert_eq!(
        error,
        "the sequences have 15 tokens with those seen before, expected at most 14, the model's positions"
    );
    let error = run(TextInputs::from_embeds(Tensor::zeros([1, 3, 32], &device))).expect_err("ids are needed");
    assert_eq!(error, "`clip_text_model` takes no `inputs_embeds`");
    assert_eq!(run(TextInputs::default()).expect_err("nothing"), "`clip_text_model` needs `input_ids`");
    let error = run(TextInputs::new(Tensor::full([1, 2], 99, &device))).expect_err("outside");
    assert_eq!(error, "`input_ids` holds 99, expected 0 to 98");
    assert!(run(ids(3).token_type_ids(Tensor::<2, Int>::zeros([1, 3], &device))).is_err());

    let model = load(&device);
    let alone = TextImageInputs { text: ids(3), image: None, return_loss: false };
    let error = model.forward(alone, &ForwardKwargs::new()).map(drop).expect_err("no image").to_string();
    assert_eq!(error, "`clip` needs `pixel_values`: it compares texts with images");
}

/// The row of the last hidden state that each text is pooled from.
fn pooled_from(eos: impl Into<TokenIds>, texts: &[[i64; 4]]) -> Vec<usize> {
    let device = device();
    let case = Case::new("clip-text");
    let mut config = CLIPTextConfig::from_pretrained(case.folder()).expect("valid");
    config.eos_token_id = Some(eos.into());
    let model = CLIPTextModel::new(&config, &Init::new(&device));
    let flat: Vec<i64> = texts.concat();
    let ids = Tensor::<1, Int>::from_data(flat.as_slice(), &device).reshape([texts.len(), 4]);
    let output = model.forward(ids, &ForwardKwargs::new()).expect("runs");
    let pooled = output.pooler_output.expect("pooled");
    (0..texts.len())
        .map(|row| {
            let wanted = bits(&pooled.clone().slice_dim(0, row..row + 1));
            let states = output.last_hidden_state.clone().slice_dim(0, row..row + 1);
            let is_it = |at: &usize| bits(&states.clone().slice_dim(1, *at..*at + 1)) == wanted;
            (0..4).find(is_it).expect("one of the hidden states")
        })
        .collect()
}

#[test]
fn texts_are_pooled_where_they_end() {
    let texts = [[5, 7, 3, 7], [9, 3, 3, 1], [1, 2, 4, 8], [98, 2, 98, 7]];
    // by the first token that ends a text, or the first token of all
    assert_eq!(pooled_from(7, &texts), [1, 0, 0, 3]);
    assert_eq!(pooled_from([8, 3], &texts), [2, 1, 3, 0]);
    // by the highest id, where the config is one of the first release
    assert_eq!(pooled_from(2, &texts), [1, 0, 3, 0]);
    assert_eq!(pooled_from([2], &texts), [0, 0, 1, 1]);
}

#[test]
fn texts_do_not_look_ahead_whatever_a_call_says() {
    let (device, case) = (device(), Case::new("clip-text"));
    let model: CLIPTextModel = case.load(&device);
    let run = |kwargs: &ForwardKwargs| model.forward(text(&case, &device), kwargs).expect("runs").last_hidden_state;
    assert_eq!(bits(&run(&ForwardKwargs::new())), bits(&run(&ForwardKwargs::new().is_causal(false))));
}

#[test]
fn a_fresh_model_is_saved_under_the_reference_s_names() {
    let case = case();
    let config = CLIPConfig::from_pretrained(case.folder()).expect("valid");
    let model = CLIPModel::new(&config, &Init::new(&device()));
    for layout in [CheckpointLayout::Published, CheckpointLayout::Model] {
        let saved = tempfile::tempdir().expect("a folder");
        model.save_pretrained_with(saved.path(), &SaveOptions::new().layout(layout)).expect("saves");
        assert_eq!(keys(saved.path()), keys(case.folder()));
    }
}
