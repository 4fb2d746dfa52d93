//! What only DINOv2 has: images of any size, positions that are taken for those of a square, and blocks of two kinds.

use crate::support::{Case, device, difference};
use burn::tensor::{Device, Int, Tensor};
use burn_models::PixelInputs;
use burn_models::config::ImageSize;
use burn_models::dinov2::{Dinov2Config, Dinov2FeedForward, Dinov2ForImageClassification, Dinov2Model};
use patching_core::class::all_slots;
use patching_core::prelude::*;

fn pixels(shape: [usize; 4], device: &Device) -> Tensor<4> {
    let count = shape.iter().product::<usize>() as i64;
    Tensor::<1, Int>::arange(0..count, device).float().sin().reshape(shape)
}

fn refused(model: &Dinov2Model, inputs: impl Into<PixelInputs>) -> String {
    model.forward(inputs, &ForwardKwargs::new()).expect_err("refused").to_string()
}

#[test]
fn what_does_not_fit_is_an_error() {
    let device = device();
    let model: Dinov2Model = Case::new("dinov2").load(&device);
    assert_eq!(
        refused(&model, pixels([1, 3, 3, 9], &device)),
        "`pixel_values` has shape [1, 3, 3, 9], expected [batch, 3, at least 4, at least 4]"
    );
    assert!(refused(&model, pixels([1, 2, 12, 12], &device)).contains("[1, 2, 12, 12]"));
    let hidden = Tensor::<2, Int>::zeros([1, 9], &device);
    let inputs = || PixelInputs::new(pixels([1, 3, 8, 12], &device));
    assert_eq!(
        refused(&model, inputs().bool_masked_pos(hidden)),
        "`bool_masked_pos` has shape [1, 9], expected [1, 6]: batch, and the patches of an image"
    );
    let labels = Tensor::<1, Int>::zeros([1], &device);
    assert!(refused(&model, inputs().labels(burn_models::Labels::Classes(labels))).contains("labels"));

    let model: Dinov2Model = Case::new("dinov2-swiglu").load(&device);
    let hidden = Tensor::<2, Int>::zeros([1, 18], &device);
    let inputs = PixelInputs::new(pixels([1, 2, 12, 12], &device)).bool_masked_pos(hidden);
    assert!(refused(&model, inputs).contains("no embedding for hidden patches"));
}

/// 18 positions are not those of a square: images are taken that have as many patches and are as high as wide.
#[test]
fn positions_that_cannot_be_stretched_are_an_error() {
    let device = device();
    let model: Dinov2Model = Case::new("dinov2-swiglu").load(&device);
    assert_eq!(
        refused(&model, pixels([1, 2, 12, 16], &device)),
        "`pixel_values` has shape [1, 2, 12, 16], expected as high as wide, of 18 patches: that many positions are not \
         those of a square"
    );
    assert!(model.forward(pixels([1, 2, 13, 13], &device), &ForwardKwargs::new()).is_ok());
}

#[test]
fn a_hidden_patch_is_not_seen_by_a_classifier_either() {
    let device = device();
    let model: Dinov2ForImageClassification = Case::new("dinov2-classes").load(&device);
    let logits = |inputs: PixelInputs| model.forward(inputs, &ForwardKwargs::new()).expect("runs").logits;
    let hidden = || Tensor::<2, Int>::from_data([[0, 1]], &device);
    let images = pixels([1, 3, 4, 8], &device);
    let other = Tensor::cat(vec![images.clone().slice_dim(3, 0..4), pixels([1, 3, 4, 4], &device) + 1.0], 3);
    let [seen, unseen] = [images, other].map(PixelInputs::new);
    assert!(difference(&logits(seen.clone()), &logits(unseen.clone())) > 1e-3);
    let [seen, unseen] = [seen, unseen].map(|images| logits(images.bool_masked_pos(hidden())));
    assert!(difference(&seen, &unseen) < 1e-6);
}

#[test]
fn the_config_chooses_what_layers_are_made_of() {
    let device = device();
    let small = Dinov2Config {
        hidden_size: 12,
        num_hidden_layers: 1,
        num_attention_heads: 3,
        mlp_ratio: 3,
        image_size: ImageSize::Square(8),
        patch_size: ImageSize::Square(4),
        layerscale_value: 0.25,
        ..Dinov2Config::default()
    };
    let gated = Dinov2Config { use_swiglu_ffn: true, drop_path_rate: 0.5, use_mask_token: false, ..small.clone() };
    assert_eq!([small.intermediate_size(), gated.intermediate_size()], [36, 24]);
    let [small, gated] = [small, gated].map(|config| Dinov2Model::new(&config, &Init::new(&device)));
    let classes = |model: &Dinov2Model, name| all_slots(model).iter().filter(|slot| slot.class == name).count();
    assert_eq!([classes(&small, "Dinov2MLP"), classes(&small, "Dinov2SwiGLUFFN")], [1, 0]);
    assert_eq!([classes(&gated, "Dinov2MLP"), classes(&gated, "Dinov2SwiGLUFFN")], [0, 1]);
    assert_eq!([&small, &gated].map(|model| classes(model, "Dinov2DropPath")), [0, 1]);
    let layer = small.encoder.layer[0].implementation::<burn_models::dinov2::Dinov2Layer>().expect("the original");
    assert!(matches!(layer.mlp, Dinov2FeedForward::Plain(_)));
    let scale = layer.layer_scale2.implementation::<burn_models::dinov2::Dinov2LayerScale>().expect("the original");
    assert_eq!(scale.lambda1.val().to_data().iter::<f32>().collect::<Vec<_>>(), [0.25; 12]);
}

#[test]
fn configs_that_cannot_be_built_are_errors() {
    let error = |json: &str| {
        let config: Dinov2Config = serde_json::from_str(json).expect("read");
        config.validate().expect_err("refused").to_string()
    };
    assert!(error(r#"{"mlp_ratio": 0}"#).contains("`mlp_ratio` is 0"));
    assert!(error(r#"{"patch_size": 225}"#).contains("`patch_size` is 225"));
    assert!(error(r#"{"hidden_size": 268435456, "mlp_ratio": 268435456}"#).contains("parameters"));
    assert!(error(r#"{"image_size": [0, 4]}"#).contains("`image_size` is 0"));
}
