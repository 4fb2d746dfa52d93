use super::wrapper;
use burn::module::Module;
use burn::tensor::{Int, Tensor};
use burn_models::dinov2::*;
use burn_models::layers::LayerContext;
use patching_core::patch::ReplacementClass;
use patching_core::prelude::*;

wrapper!(PatchEmbeddings(Dinov2PatchEmbeddings), new(config: &Dinov2Config), forward(x: Tensor<4>) -> Tensor<3>);
wrapper!(
    Embeddings(Dinov2Embeddings),
    new(config: &Dinov2Config),
    forward(pixel_values: Tensor<4>, bool_masked_pos: Option<Tensor<2, Int>>) -> Tensor<3>
);
wrapper!(
    Attention(Dinov2Attention),
    new(config: &Dinov2Config, layer_idx: usize),
    forward(x: Tensor<3>, context: &mut LayerContext) -> (Tensor<3>, Option<Tensor<4>>)
);
wrapper!(LayerScale(Dinov2LayerScale), new(config: &Dinov2Config), forward(x: Tensor<3>) -> Tensor<3>);
wrapper!(DropPath(Dinov2DropPath), new(config: &Dinov2Config), forward(x: Tensor<3>) -> Tensor<3>);
wrapper!(Mlp(Dinov2MLP), new(config: &Dinov2Config), forward(x: Tensor<3>) -> Tensor<3>);
wrapper!(SwiGLUFFN(Dinov2SwiGLUFFN), new(config: &Dinov2Config), forward(x: Tensor<3>) -> Tensor<3>);
wrapper!(
    Layer(Dinov2Layer),
    new(config: &Dinov2Config, layer_idx: usize),
    forward(x: Tensor<3>, context: &mut LayerContext) -> Tensor<3>
);

pub fn wrappers() -> Vec<(&'static str, ReplacementClass)> {
    vec![
        ("Dinov2PatchEmbeddings", class::<PatchEmbeddings>()),
        ("Dinov2Embeddings", class::<Embeddings>()),
        ("Dinov2Attention", class::<Attention>()),
        ("Dinov2LayerScale", class::<LayerScale>()),
        ("Dinov2DropPath", class::<DropPath>()),
        ("Dinov2MLP", class::<Mlp>()),
        ("Dinov2SwiGLUFFN", class::<SwiGLUFFN>()),
        ("Dinov2Layer", class::<Layer>()),
    ]
}
