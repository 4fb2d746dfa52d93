use super::wrapper;
use burn::module::Module;
use burn::tensor::{Int, Tensor};
use burn_models::layers::LayerContext;
use burn_models::vit::*;
use patching_core::patch::ReplacementClass;
use patching_core::prelude::*;

wrapper!(PatchEmbeddings(ViTPatchEmbeddings), new(config: &ViTConfig), forward(x: Tensor<4>) -> Tensor<3>);
wrapper!(
    Embeddings(ViTEmbeddings),
    new(config: &ViTConfig, use_mask_token: bool),
    forward(pixel_values: Tensor<4>, bool_masked_pos: Option<Tensor<2, Int>>) -> Tensor<3>
);
wrapper!(
    Attention(ViTAttention),
    new(config: &ViTConfig, layer_idx: usize),
    forward(x: Tensor<3>, context: &mut LayerContext) -> (Tensor<3>, Option<Tensor<4>>)
);
wrapper!(Mlp(ViTMLP), new(config: &ViTConfig), forward(x: Tensor<3>) -> Tensor<3>);
wrapper!(
    Layer(ViTLayer),
    new(config: &ViTConfig, layer_idx: usize),
    forward(x: Tensor<3>, context: &mut LayerContext) -> Tensor<3>
);
wrapper!(Pooler(ViTPooler), new(config: &ViTConfig), forward(x: Tensor<3>) -> Tensor<2>);

pub fn wrappers() -> Vec<(&'static str, ReplacementClass)> {
    vec![
        ("ViTPatchEmbeddings", class::<PatchEmbeddings>()),
        ("ViTEmbeddings", class::<Embeddings>()),
        ("ViTAttention", class::<Attention>()),
        ("ViTMLP", class::<Mlp>()),
        ("ViTLayer", class::<Layer>()),
        ("ViTPooler", class::<Pooler>()),
    ]
}
