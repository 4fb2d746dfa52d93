use super::wrapper;
use burn::module::Module;
use burn::tensor::{DType, Int, Tensor};
use burn_models::layers::LayerContext;
use patching_core::patch::ReplacementClass;
use patching_core::prelude::*;

/// Defines a class around each class of a family, in a module of its name, and lists them.
macro_rules! wrapped_family {
    (
        $family:ident, $config:ident, $norm:ident, $rotary:ident, $attention:ident, $layer:ident
        $(, mlp $mlp:ident($($size:ident: $size_ty:ty)?))?
        $(, sparse $router:ident, $experts:ident, $block:ident)?
    ) => {
        mod $family {
            use super::*;
            use burn_models::$family::*;

            wrapper!(Norm($norm), new(size: usize, epsilon: f64), forward(x: Tensor<3>) -> Tensor<3>);
            wrapper!(
                Rotary($rotary),
                new(config: &$config),
                forward(position_ids: Tensor<2, Int>, dtype: DType) -> (Tensor<3>, Tensor<3>)
            );
            wrapper!(
                Attention($attention),
                new(config: &$config, layer_idx: usize),
                forward(x: Tensor<3>, context: &mut LayerContext) -> (Tensor<3>, Option<Tensor<4>>)
            );
            wrapper!(
                Layer($layer),
                new(config: &$config, layer_idx: usize),
                forward(x: Tensor<3>, context: &mut LayerContext) -> Tensor<3>
            );
            $(
                wrapper!(Mlp($mlp), new(config: &$config $(, $size: $size_ty)?), forward(x: Tensor<3>) -> Tensor<3>);
            )?
            $(
                wrapper!(
                    Router($router),
                    new(config: &$config, layer_idx: usize),
                    forward(x: Tensor<2>, context: &mut LayerContext) -> (Tensor<2>, Tensor<2>, Tensor<2, Int>)
                );
                wrapper!(
                    Experts($experts),
                    new(config: &$config),
                    forward(x: Tensor<2>, index: Tensor<2, Int>, weights: Tensor<2>, context: &LayerContext) -> Tensor<2>
                );
                wrapper!(
                    Block($block),
                    new(config: &$config, layer_idx: usize),
                    forward(x: Tensor<3>, context: &mut LayerContext) -> Tensor<3>
                );
            )?

            pub(super) fn wrappers() -> Vec<(&'static str, ReplacementClass)> {
                vec![
                    (stringify!($norm), class::<Norm>()),
                    (stringify!($rotary), class::<Rotary>()),
                    (stringify!($attention), class::<Attention>()),
                    (stringify!($layer), class::<Layer>()),
                    $((stringify!($mlp), class::<Mlp>()),)?
                    $(
                        (stringify!($router), class::<Router>()),
                        (stringify!($experts), class::<Experts>()),
                        (stringify!($block), class::<Block>()),
                    )?
                ]
            }
        }
    };
}

wrapped_family!(
    llama, LlamaConfig, LlamaRMSNorm, LlamaRotaryEmbedding, LlamaAttention, LlamaDecoderLayer,
    mlp LlamaMLP()
);
wrapped_family!(
    mistral, MistralConfig, MistralRMSNorm, MistralRotaryEmbedding, MistralAttention, MistralDecoderLayer,
    mlp MistralMLP()
);
wrapped_family!(
    mixtral, MixtralConfig, MixtralRMSNorm, MixtralRotaryEmbedding, MixtralAttention, MixtralDecoderLayer,
    sparse MixtralTopKRouter, MixtralExperts, MixtralSparseMoeBlock
);
wrapped_family!(
    qwen2, Qwen2Config, Qwen2RMSNorm, Qwen2RotaryEmbedding, Qwen2Attention, Qwen2DecoderLayer,
    mlp Qwen2MLP()
);
wrapped_family!(
    qwen2_moe, Qwen2MoeConfig, Qwen2MoeRMSNorm, Qwen2MoeRotaryEmbedding, Qwen2MoeAttention, Qwen2MoeDecoderLayer,
    mlp Qwen2MoeMLP(intermediate_size: usize),
    sparse Qwen2MoeTopKRouter, Qwen2MoeExperts, Qwen2MoeSparseMoeBlock
);
wrapped_family!(
    qwen3, Qwen3Config, Qwen3RMSNorm, Qwen3RotaryEmbedding, Qwen3Attention, Qwen3DecoderLayer,
    mlp Qwen3MLP()
);

pub(super) fn wrappers() -> Vec<(&'static str, ReplacementClass)> {
    [
        llama::wrappers(),
        mistral::wrappers(),
        mixtral::wrappers(),
        qwen2::wrappers(),
        qwen2_moe::wrappers(),
        qwen3::wrappers(),
    ]
    .concat()
}
