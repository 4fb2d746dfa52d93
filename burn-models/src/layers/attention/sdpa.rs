use super::{Attention, AttentionOutput, eager_attention};
use crate::layers::embedding::{is_flex, is_ndarray};
use burn::tensor::module::attention;
use burn::tensor::ops::AttentionModuleOptions;
use burn::tensor::{DType, Device, Tensor};

/// Burn's fused attention, and one of our own for f32 on burn-flex; where weights are wanted, the same by the formula.
///
/// The formula also serves single queries, where there is nothing to fuse and a fused kernel would first copy the
/// whole cache together, and devices where Burn's fused operation is the formula in disguise.
pub fn sdpa_attention(inputs: Attention) -> AttentionOutput {
    let [_, heads, queries, _] = inputs.query.dims();
    let kernel = Kernel::of(&inputs.query.device());
    // A kernel that widens f16 would not let its lowest number outweigh the scores.
    let is_too_narrow = inputs.mask.bias.is_some() && inputs.query.dtype() == DType::F16;
    if inputs.weights_wanted || queries == 1 || kernel == Kernel::None || is_too_narrow {
        return eager_attention(inputs);
    }
    #[cfg(feature = "flex")]
    if is_flex(&inputs.query.device()) && super::tiled::is_for(&inputs) {
        return (super::tiled::tiled_attention(inputs), None);
    }
    let [_, key_heads, _, _] = inputs.key.dims();
    let group = heads / key_heads.max(1);
    let (key, value) = match kernel {
        Kernel::EqualHeads => (repeated(inputs.key, group), repeated(inputs.value, group)),
        Kernel::SharedHeads | Kernel::None => (inputs.key, inputs.value),
    };
    let is_causal = inputs.mask.is_causal && inputs.mask.bias.is_none();
    let bias = match (inputs.mask.bias, inputs.position_bias) {
        (Some(mask), Some(position)) => Some(position + mask),
        (mask, position) => mask.or(position),
    };
    let options = AttentionModuleOptions { scale: Some(inputs.scaling), softcap: None, is_causal };
    let output = attention(inputs.query, key, value, None, bias, options);
    (output, None)
}

/// What a device's fused attention can do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kernel {
    /// It is the formula in separate operations.
    None,
    /// It needs as many key heads as query heads.
    EqualHeads,
    /// Query heads may share a key head.
    SharedHeads,
}

impl Kernel {
    fn of(device: &Device) -> Self {
        if device.is_autodiff() || is_ndarray(device) {
            Self::None
        } else if is_flex(device) {
            Self::SharedHeads
        } else {
            Self::EqualHeads
        }
    }
}

/// Each head `times` times in a row: `[batch, heads, seq, size]` to `[batch, heads * times, seq, size]`.
fn repeated(x: Tensor<4>, times: usize) -> Tensor<4> {
    if times == 1 {
        return x;
    }
    let [batch, heads, seq, size] = x.dims();
    x.unsqueeze_dim::<5>(2).expand([batch, heads, times, seq, size]).reshape([batch, heads * times, seq, size])
}
