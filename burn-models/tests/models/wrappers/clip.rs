use super::wrapper;
use burn::module::Module;
use burn::tensor::{Int, Tensor};
use burn_models::clip::*;
use burn_models::layers::LayerContext;
use patching_core::patch::ReplacementClass;
use patching_core::prelude::*;

wrapper!(
    TextEmbeddings(CLIPTextEmbeddings),
    new(config: &CLIPTextConfig),
    forward(input_ids: Tensor<2, Int>, position_ids: Tensor<2, Int>) -> Tensor<3>
);
wrapper!(
    VisionEmbeddings(CLIPVisionEmbeddings),
    new(config: &CLIPVisionConfig),
    forward(pixel_values: Tensor<4>) -> Tensor<3>
);
wrapper!(
    Attention(CLIPAttention),
    new(config: &CLIPEncoderConfig, layer_idx: usize),
    forward(x: Tensor<3>, context: &mut LayerContext) -> (Tensor<3>, Option<Tensor<4>>)
);
wrapper!(Mlp(CLIPMLP), new(config: &CLIPEncoderConfig), forward(x: Tensor<3>) -> Tensor<3>);
wrapper!(
    Layer(CLIPEncoderLayer),
    new(config: &CLIPEncoderConfig, layer_idx: usize),
    forward(x: Tensor<3>, context: &mut LayerContext) -> Tensor<3>
);

pub fn wrappers() -> Vec<(&'static str, ReplacementClass)> {
    vec![
        ("CLIPTextEmbeddings", class::<TextEmbeddings>()),
        ("CLIPVisionEmbeddings", class::<VisionEmbeddings>()),
        ("CLIPAttention", class::<Attention>()),
        ("CLIPMLP", class::<Mlp>()),
        ("CLIPEncoderLayer", class::<Layer>()),
    ]
}
