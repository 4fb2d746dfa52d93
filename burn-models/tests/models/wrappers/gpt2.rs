use super::wrapper;
use burn::module::Module;
use burn::tensor::Tensor;
use burn_models::gpt2::*;
use burn_models::layers::LayerContext;
use patching_core::patch::ReplacementClass;
use patching_core::prelude::*;

wrapper!(
    Attention(GPT2Attention),
    new(config: &GPT2Config, layer_idx: usize, is_cross_attention: bool),
    forward(x: Tensor<3>, context: &mut LayerContext) -> (Tensor<3>, Option<Tensor<4>>)
);
wrapper!(Mlp(GPT2MLP), new(intermediate_size: usize, config: &GPT2Config), forward(x: Tensor<3>) -> Tensor<3>);
wrapper!(
    Block(GPT2Block),
    new(config: &GPT2Config, layer_idx: usize),
    forward(x: Tensor<3>, context: &mut LayerContext) -> Tensor<3>
);

pub(crate) fn wrappers() -> Vec<(&'static str, ReplacementClass)> {
    vec![("GPT2Attention", class::<Attention>()), ("GPT2MLP", class::<Mlp>()), ("GPT2Block", class::<Block>())]
}
