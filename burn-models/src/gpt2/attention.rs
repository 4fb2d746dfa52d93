use super::GPT2Config;
use crate::layers::attention::{AttentionShape, Extra, cross_attention, cross_query, self_attention};
use crate::layers::{LayerContext, linear, new_linear, split_heads};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// GPT-2's attention, of a sequence to itself or to what an encoder gave.
#[derive(Module, Debug)]
pub struct GPT2Attention {
    /// Queries, keys and values one after the other, `[hidden, 3 * hidden]`; of attention to an encoder keys and values,
    /// `[hidden, 2 * hidden]`.
    pub c_attn: Linear,
    /// The queries of attention to an encoder, `[hidden, hidden]`.
    pub q_attn: Option<Linear>,
    /// `[hidden, hidden]`
    pub c_proj: Linear,
    #[module(skip)]
    shape: AttentionShape,
}

#[module_class]
impl GPT2Attention {
    /// Fresh parameters for layer `layer_idx`.
    pub fn new(config: &GPT2Config, layer_idx: usize, is_cross_attention: bool, init: &Init) -> Self {
        let (size, std) = (config.n_embd, config.initializer_range);
        let linear = |outputs| new_linear(size, outputs, true, std, init.device());
        let plain = AttentionShape::plain(layer_idx, config.n_head, config.head_dim());
        let scaling = if config.scale_attn_weights { plain.scaling } else { 1.0 };
        let divisor = if config.scale_attn_by_inverse_layer_idx { (layer_idx + 1) as f64 } else { 1.0 };
        Self {
            c_attn: linear(if is_cross_attention { 2 * size } else { 3 * size }),
            q_attn: is_cross_attention.then(|| linear(size)),
            c_proj: new_linear(size, size, true, config.residual_std(), init.device()),
            shape: AttentionShape { scaling: scaling / divisor, upcasts: config.reorder_and_upcast_attn, ..plain },
        }
    }

    /// `[batch, seq, hidden]` to the same, and the weights `[batch, heads, query, key]` if they are recorded. Without an
    /// encoder, attention to one gives what nothing is projected to.
    pub fn forward(&self, hidden_states: Tensor<3>, context: &mut LayerContext) -> (Tensor<3>, Option<Tensor<4>>) {
        let (attended, weights) = match &self.q_attn {
            None => {
                let [query, key, value] = self.parts(linear(&self.c_attn, hidden_states));
                self_attention(&self.shape, query, key, value, context)
            }
            Some(q_attn) => {
                let query = cross_query(&self.shape, q_attn, hidden_states);
                let project = |states| self.parts(linear(&self.c_attn, states));
                cross_attention(&self.shape, query, project, context, Extra::none())
            }
        };
        (linear(&self.c_proj, attended), weights)
    }

    /// What one projection gave for several, as heads.
    fn parts<const N: usize>(&self, joined: Tensor<3>) -> [Tensor<4>; N] {
        let size = self.shape.heads * self.shape.head_dim;
        std::array::from_fn(|at| split_heads(joined.clone().slice_dim(2, at * size..(at + 1) * size), self.shape.heads))
    }
}
