use super::wrapper;
use burn::module::Module;
use burn::tensor::Tensor;
use burn_models::layers::LayerContext;
use burn_models::t5::*;
use patching_core::patch::ReplacementClass;
use patching_core::prelude::*;

/// What an attention gives: its output, the bias for positions, and the weights.
type Attended = (Tensor<3>, Option<Tensor<4>>, Option<Tensor<4>>);

wrapper!(Norm(T5LayerNorm), new(size: usize, epsilon: f64), forward(x: Tensor<3>) -> Tensor<3>);
wrapper!(
    Attention(T5Attention),
    new(config: &T5Config, has_bias: bool, layer_idx: usize),
    forward(
        x: Tensor<3>,
        crosses: bool,
        position_bias: Option<Tensor<4>>,
        weights_wanted: bool,
        context: &mut LayerContext
    ) -> Attended
);
wrapper!(
    SelfAttention(T5LayerSelfAttention),
    new(config: &T5Config, has_bias: bool, layer_idx: usize),
    forward(x: Tensor<3>, position_bias: Option<Tensor<4>>, context: &mut LayerContext) -> Attended
);
wrapper!(
    CrossAttention(T5LayerCrossAttention),
    new(config: &T5Config, layer_idx: usize),
    forward(x: Tensor<3>, position_bias: Option<Tensor<4>>, context: &mut LayerContext) -> Attended
);
wrapper!(
    Block(T5Block),
    new(config: &T5Config, has_bias: bool, layer_idx: usize),
    forward(x: Tensor<3>, position_bias: Option<Tensor<4>>, context: &mut LayerContext) -> (Tensor<3>, Option<Tensor<4>>)
);
wrapper!(FeedForward(T5LayerFF), new(config: &T5Config), forward(x: Tensor<3>) -> Tensor<3>);
wrapper!(Dense(T5DenseActDense), new(config: &T5Config), forward(x: Tensor<3>) -> Tensor<3>);
wrapper!(Gated(T5DenseGatedActDense), new(config: &T5Config), forward(x: Tensor<3>) -> Tensor<3>);
wrapper!(Classifier(T5ClassificationHead), new(config: &T5Config), forward(x: Tensor<2>) -> Tensor<2>);

pub(super) fn wrappers() -> Vec<(&'static str, ReplacementClass)> {
    vec![
        ("T5LayerNorm", class::<Norm>()),
        ("T5Attention", class::<Attention>()),
        ("T5LayerSelfAttention", class::<SelfAttention>()),
        ("T5LayerCrossAttention", class::<CrossAttention>()),
        ("T5Block", class::<Block>()),
        ("T5LayerFF", class::<FeedForward>()),
        ("T5DenseActDense", class::<Dense>()),
        ("T5DenseGatedActDense", class::<Gated>()),
        ("T5ClassificationHead", class::<Classifier>()),
    ]
}
