//! ViT: images of other sizes, hidden patches, and checkpoints under either of two sets of names.

use crate::support::{Case, TOLERANCE, assert_close, bits, device, devices, floats, keys, tensors};
use burn::tensor::{Device, Int, Tensor};
use burn_models::PixelInputs;
use burn_models::config::ImageSize;
use burn_models::vit::{ViTConfig, ViTForImageClassification, ViTForMaskedImageModeling, ViTModel, ViTParts};
use patching_core::prelude::*;
use patching_core::weights::{CheckpointLayout, LoadOptions, SaveOptions};

fn pixels(case: &Case, device: &Device) -> Tensor<4> {
    floats(&tensors(&case.weights().join("inputs.safetensors"))["pixel_values"], device)
}

#[test]
fn images_of_other_sizes_stretch_positions() {
    let case = Case::new("vit");
    let expected = case.expected("wide.safetensors");
    for (on, device) in devices() {
        let model: ViTModel = case.load(&device);
        for (key, pixels) in expected.iter().filter(|(key, _)| key.ends_with("pixel_values")) {
            let size = key.trim_end_matches(".pixel_values");
            let images = || PixelInputs::new(floats(pixels, &device));
            let kwargs = ForwardKwargs::new().output_attentions(true);
            let output = model.forward(images().interpolate_pos_encoding(true), &kwargs).expect("runs");
            let name = format!("{size} on {on}");
            assert_close(&name, &output.last_hidden_state, &expected[&format!("{size}.last_hidden_state")], TOLERANCE);
            assert_eq!(model.forward(images(), &ForwardKwargs::new()).is_ok(), size == "12x12", "{name}");
        }
    }
}

/// Where images are not as high as wide, as many patches in another shape are stretched, and the same shape is not.
#[test]
fn positions_of_oblong_images_are_stretched_along_both_sides() {
    let device = device();
    let case = Case::new("vit-pair");
    let model: ViTModel = case.load(&device);
    let run = |images: PixelInputs| model.forward(images, &ForwardKwargs::new()).expect("runs").last_hidden_state;
    let images = pixels(&case, &device);
    let same = run(PixelInputs::new(images.clone()).interpolate_pos_encoding(true));
    assert_eq!(bits(&same), bits(&run(images.into())));
    // 6 by 3 patches instead of 3 by 6
    let turned = Tensor::zeros([1, 2, 24, 9], &device);
    assert_eq!(run(PixelInputs::new(turned).interpolate_pos_encoding(true)).dims(), [1, 19, 30]);
}

#[test]
fn checkpoints_have_the_published_names_or_those_of_the_model() {
    for name in ["vit", "vit-classes", "vit-masked"] {
        let case = Case::new(name);
        let check = |model: &dyn Fn() -> Saved| {
            let Saved { published, own } = model();
            assert_eq!(published, keys(case.folder()), "{name}");
            assert!(own.iter().any(|key| key.contains("layers.0.attention.q_proj.weight")), "{own:?}");
            assert_eq!(own.len(), published.len());
        };
        match name {
            "vit" => check(&|| saved::<ViTModel>(&case)),
            "vit-classes" => check(&|| saved::<ViTForImageClassification>(&case)),
            _ => check(&|| saved::<ViTForMaskedImageModeling>(&case)),
        }
    }
}

/// The names that a fresh model is saved under.
struct Saved {
    published: Vec<String>,
    own: Vec<String>,
}

fn saved<M: PreTrainedModel<Config = ViTConfig>>(case: &Case) -> Saved {
    let config = ViTConfig::from_pretrained(case.folder()).expect("valid");
    let model = M::new(&config, &Init::new(&device()));
    let [published, own] = [CheckpointLayout::Published, CheckpointLayout::Model].map(|layout| {
        let dir = tempfile::tempdir().expect("a folder");
        model.save_pretrained_with(dir.path(), &SaveOptions::new().layout(layout)).expect("saves");
        // and loads again, whichever it is
        M::from_pretrained(dir.path(), &device()).expect("loads");
        keys(dir.path())
    });
    Saved { published, own }
}

#[test]
fn a_head_s_checkpoint_is_one_of_its_base_model() {
    let device = device();
    let case = Case::new("vit-classes");
    // it has no pooler
    let error = ViTModel::from_pretrained(case.folder(), &device).map(drop).expect_err("incomplete").to_string();
    assert!(error.contains("pooler.dense.weight"), "{error}");
    let config = ViTConfig::from_pretrained(case.folder()).expect("valid");
    let parts = ViTParts { pooler: false, mask_token: false };
    let base = ViTModel::with_parts(&config, parts, &Init::new(&device));
    let (base, report) = base.load_weights_with(case.folder(), &LoadOptions::new()).expect("loads");
    assert!(report.missing.is_empty(), "{report}");
    let output = base.forward(pixels(&case, &device), &ForwardKwargs::new().output_hidden_states(true)).expect("runs");
    assert!(output.pooler_output.is_none());
    for (position, _, state) in output.hidden_states.iter() {
        let expected = &case.expected("outputs.safetensors")[&format!("hidden_states.{position}")];
        assert_close(&format!("hidden state {position}"), state, expected, TOLERANCE);
    }
}

#[test]
fn hidden_patches_are_for_models_that_know_them() {
    let device = device();
    let case = Case::new("vit-masked");
    let painter: ViTForMaskedImageModeling = case.load(&device);
    let hidden = |shape: [usize; 2]| Tensor::<2, Int>::ones(shape, &device);
    let run = |images: PixelInputs| painter.forward(images, &ForwardKwargs::new()).map_err(|error| error.to_string());

    let output = run(pixels(&case, &device).into()).expect("runs");
    assert!(output.loss.is_none(), "nothing is hidden");
    let error = run(PixelInputs::new(pixels(&case, &device)).bool_masked_pos(hidden([2, 8]))).map(drop);
    assert!(error.expect_err("not 9").starts_with("`bool_masked_pos` has shape [2, 8], expected [2, 9]"));
    // what is hidden everywhere does not matter
    let all = |images: Tensor<4>| run(PixelInputs::new(images).bool_masked_pos(hidden([2, 9]))).expect("runs");
    let (one, other) = (all(pixels(&case, &device)), all(pixels(&case, &device) * 3.0));
    assert_eq!(bits(&one.reconstruction), bits(&other.reconstruction));
    assert_ne!(bits(&one.loss.expect("hidden")), bits(&other.loss.expect("hidden")));

    let model: ViTModel = Case::new("vit").load(&device);
    let images = PixelInputs::new(pixels(&Case::new("vit"), &device)).bool_masked_pos(hidden([2, 9]));
    let error = model.forward(images, &ForwardKwargs::new()).map(drop).expect_err("sees all").to_string();
    assert_eq!(error, "`vit` takes no `bool_masked_pos`: it has no embedding for hidden patches");

    let mut config = ViTConfig::from_pretrained(case.folder()).expect("valid");
    config.encoder_stride = 2;
    let painter = ViTForMaskedImageModeling::new(&config, &Init::new(&device));
    let images = || PixelInputs::new(pixels(&case, &device));
    let output = painter.forward(images(), &ForwardKwargs::new()).expect("runs");
    assert_eq!(output.reconstruction.dims(), [2, 3, 6, 6]);
    let error = painter.forward(images().bool_masked_pos(hidden([2, 9])), &ForwardKwargs::new()).map(drop);
    assert!(error.expect_err("other sizes").to_string().contains("encoder_stride"));
}

#[test]
fn configs_of_every_kind() {
    let config = |json: &str| ViTConfig::from_json(json).map_err(|error| error.to_string());
    let pair = config(r#"{"model_type": "vit", "image_size": [64, 32], "patch_size": [16, 8]}"#).expect("valid");
    assert_eq!((pair.image_size, pair.grid().trained()), (ImageSize::Pair([64, 32]), [4, 4]));
    let written = serde_json::to_string(&pair).expect("a value of JSON");
    assert_eq!(config(&written).expect("valid"), pair);
    // heads need not divide the hidden size
    let odd = config(r#"{"hidden_size": 30, "num_attention_heads": 4}"#).expect("valid");
    assert_eq!(odd.head_dim(), 7);
    let own = config(r#"{"head_dim": 5, "pooler_output_size": 0}"#).expect("valid");
    assert_eq!((own.head_dim(), own.pooler_output_size()), (5, 768));

    for (json, field) in [
        (r#"{"patch_size": 500}"#, "patch_size"),
        (r#"{"image_size": [224, 0]}"#, "image_size"),
        (r#"{"image_size": [1, 2, 3]}"#, "image_size"),
        (r#"{"num_channels": 0}"#, "num_channels"),
        (r#"{"num_attention_heads": 0}"#, "num_attention_heads"),
        (r#"{"hidden_size": 3, "num_attention_heads": 4}"#, "head_dim"),
        (r#"{"encoder_stride": 0}"#, "encoder_stride"),
        (r#"{"hidden_act": "gelly"}"#, "hidden_act"),
        (r#"{"hidden_size": 268435456, "num_hidden_layers": 4000}"#, "parameters"),
    ] {
        let error = config(json).map(drop).expect_err(json);
        assert!(error.contains(field), "{json}: {error}");
    }
}
