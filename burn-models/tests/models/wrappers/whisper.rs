use super::wrapper;
use burn::module::Module;
use burn::tensor::{Int, Tensor};
use burn_models::layers::LayerContext;
use burn_models::whisper::{
    WhisperAttention, WhisperConfig, WhisperDecoderLayer, WhisperEncoderLayer, WhisperPositionalEmbedding,
};
use patching_core::patch::ReplacementClass;
use patching_core::prelude::*;

wrapper!(
    Attention(WhisperAttention),
    new(config: &WhisperConfig, heads: usize, layer_idx: usize, is_cross_attention: bool),
    forward(x: Tensor<3>, context: &mut LayerContext) -> (Tensor<3>, Option<Tensor<4>>)
);
wrapper!(
    EncoderLayer(WhisperEncoderLayer),
    new(config: &WhisperConfig, layer_idx: usize),
    forward(x: Tensor<3>, context: &mut LayerContext) -> Tensor<3>
);
wrapper!(
    DecoderLayer(WhisperDecoderLayer),
    new(config: &WhisperConfig, layer_idx: usize),
    forward(x: Tensor<3>, context: &mut LayerContext) -> Tensor<3>
);
wrapper!(
    Positions(WhisperPositionalEmbedding),
    new(positions: usize, size: usize, std: f64),
    forward(position_ids: Tensor<2, Int>) -> Tensor<3>
);

pub fn wrappers() -> Vec<(&'static str, ReplacementClass)> {
    vec![
        ("WhisperAttention", class::<Attention>()),
        ("WhisperEncoderLayer", class::<EncoderLayer>()),
        ("WhisperDecoderLayer", class::<DecoderLayer>()),
        ("WhisperPositionalEmbedding", class::<Positions>()),
    ]
}
