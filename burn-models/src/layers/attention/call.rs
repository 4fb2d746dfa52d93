use crate::config::DecoderConfig;
use crate::layers::{AttentionMask, LayerContext, apply_rotary, linear, merge_heads, split_heads};
use burn::nn::Linear;
use burn::tensor::{DType, Tensor};
use patching_core::capture::is_wanted;

/// What an attention function gives: the attended values `[batch, heads, query, value size]` and, if they were
/// wanted, the weights `[batch, heads, query, key]`.
pub type AttentionOutput = (Tensor<4>, Option<Tensor<4>>);

/// What an attention function is given.
#[derive(Clone, Debug)]
pub struct Attention {
    /// `[batch, heads, query, size]`
    pub query: Tensor<4>,
    /// `[batch, key heads, key, size]`; the key heads divide the heads.
    pub key: Tensor<4>,
    /// `[batch, key heads, key, value size]`
    pub value: Tensor<4>,
    /// What each query may look at.
    pub mask: AttentionMask,
    /// Added to the scores before the mask, `[batch or 1, heads, query, key]`: relative positions.
    pub position_bias: Option<Tensor<4>>,
    /// What the scores are multiplied by.
    pub scaling: f64,
    /// Whether somebody records the weights of this layer.
    pub weights_wanted: bool,
}

/// The numbers of an attention layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionShape {
    /// The layer's place in the cache.
    pub layer_idx: usize,
    /// The number of query heads.
    pub heads: usize,
    /// The number of key and value heads.
    pub key_heads: usize,
    /// The size of a head.
    pub head_dim: usize,
    /// How far back the layer looks.
    pub window: Option<usize>,
    /// What the scores are multiplied by.
    pub scaling: f64,
    /// Whether it is computed in f32, whatever the model computes in.
    pub upcasts: bool,
}

impl AttentionShape {
    /// The numbers of layer `layer_idx` with as many key heads as query heads, which looks at everything.
    pub fn plain(layer_idx: usize, heads: usize, head_dim: usize) -> Self {
        let scaling = 1.0 / (head_dim as f64).sqrt();
        Self { layer_idx, heads, key_heads: heads, head_dim, window: None, scaling, upcasts: false }
    }

    /// The numbers of layer `layer_idx` of a decoder.
    pub fn of<C: DecoderConfig>(config: &C, layer_idx: usize) -> Self {
        Self {
            layer_idx,
            heads: config.num_attention_heads(),
            key_heads: config.num_key_value_heads(),
            head_dim: config.head_dim(),
            window: config.sliding_window(layer_idx),
            scaling: 1.0 / (config.head_dim() as f64).sqrt(),
            upcasts: false,
        }
    }
}

/// Projects hidden states to queries, keys and values and splits their heads.
///
/// # Shapes
///
/// - `hidden_states`: `[batch, seq, hidden]`
/// - output: `[batch, heads, seq, size]`, then twice `[batch, key heads, seq, size]`
pub fn project(shape: &AttentionShape, [query, key, value]: [&Linear; 3], hidden_states: Tensor<3>) -> [Tensor<4>; 3] {
    [
        split_heads(linear(query, hidden_states.clone()), shape.heads),
        split_heads(linear(key, hidden_states.clone()), shape.key_heads),
        split_heads(linear(value, hidden_states), shape.key_heads),
    ]
}

/// Projects queries for attention to what an encoder gave, and splits their heads: `[batch, seq, hidden]` to
/// `[batch, heads, seq, size]`.
pub fn cross_query(shape: &AttentionShape, query: &Linear, hidden_states: Tensor<3>) -> Tensor<4> {
    split_heads(linear(query, hidden_states), shape.heads)
}

/// Projects what an encoder gave to keys and values and splits their heads, for [`cross_attention`].
///
/// # Shapes
///
/// - `states`: `[batch, source, hidden]`
/// - output: twice `[batch, key heads, source, size]`
pub fn cross_project(shape: &AttentionShape, projections: [&Linear; 2], states: Tensor<3>) -> [Tensor<4>; 2] {
    projections.map(|projection| split_heads(linear(projection, states.clone()), shape.key_heads))
}

/// Attention of a sequence to itself and to what the cache holds: turns queries and keys by their positions, updates
/// the cache, and calls the implementation that the config chose.
///
/// To be called from an attention class's `forward`, whose second output the weights are: they are computed only if
/// that is recorded.
///
/// # Shapes
///
/// - `query`: `[batch, heads, seq, size]`
/// - `key`, `value`: `[batch, key heads, seq, size]`
/// - output: `[batch, seq, heads * size]`, and `[batch, heads, seq, key]`
pub fn self_attention(
    shape: &AttentionShape,
    query: Tensor<4>,
    key: Tensor<4>,
    value: Tensor<4>,
    context: &mut LayerContext,
) -> (Tensor<3>, Option<Tensor<4>>) {
    self_attention_with(shape, query, key, value, context, Extra::none())
}

/// [`self_attention`] with a bias for positions, or for a class whose weights are not element 1.
pub fn self_attention_with(
    shape: &AttentionShape,
    query: Tensor<4>,
    key: Tensor<4>,
    value: Tensor<4>,
    context: &mut LayerContext,
    extra: Extra,
) -> (Tensor<3>, Option<Tensor<4>>) {
    let (query, key) = match context.rotary() {
        Some(rotary) => (apply_rotary(query, rotary), apply_rotary(key, rotary)),
        None => (query, key),
    };
    let (key, value) = match context.cache_mut() {
        Some(cache) => cache.update(shape.layer_idx, key, value),
        None => (key, value),
    };
    let mask = context.mask(shape.window, key.dims()[2]);
    attend(shape, [query, key, value], mask, extra, context)
}

/// What some attention layers add to a call.
#[derive(Clone, Debug)]
pub struct Extra {
    /// Added to the scores before the mask, `[batch or 1, heads, query, key]`: relative positions.
    pub position_bias: Option<Tensor<4>>,
    /// Whether somebody records the weights. A class that returns them says `is_wanted` of their index.
    pub weights_wanted: bool,
}

impl Extra {
    /// No bias; the weights are element 1 of what the slot being called returns, as everywhere but in a few families.
    pub fn none() -> Self {
        Self { position_bias: None, weights_wanted: is_wanted(1) }
    }
}

/// Attention of a decoder's sequence to what an encoder gave, which `project` makes keys and values of: once, if there
/// is a cache. Without an encoder there is nothing to look at: all zeros, and no weights.
///
/// # Shapes
///
/// - `query`: `[batch, heads, seq, size]`
/// - `project`: `[batch, source, hidden]` to twice `[batch, key heads, source, size]`
/// - output: `[batch, seq, heads * size]`, and `[batch, heads, seq, source]`
pub fn cross_attention(
    shape: &AttentionShape,
    query: Tensor<4>,
    project: impl FnOnce(Tensor<3>) -> [Tensor<4>; 2],
    context: &mut LayerContext,
    extra: Extra,
) -> (Tensor<3>, Option<Tensor<4>>) {
    match context.of_encoder(shape.layer_idx, project) {
        Some(([key, value], mask)) => attend(shape, [query, key, value], mask, extra, context),
        None => (merge_heads(query).zeros_like(), None),
    }
}

fn attend(
    shape: &AttentionShape,
    [query, key, value]: [Tensor<4>; 3],
    mask: AttentionMask,
    Extra { position_bias, weights_wanted }: Extra,
    context: &LayerContext,
) -> (Tensor<3>, Option<Tensor<4>>) {
    let dtype = query.dtype();
    let is_narrow = shape.upcasts && !matches!(dtype, DType::F32 | DType::F64);
    let wide = |tensor: Tensor<4>| if is_narrow { tensor.cast(DType::F32) } else { tensor };
    let inputs = Attention {
        query: wide(query),
        key: wide(key),
        value: wide(value),
        mask: AttentionMask { bias: mask.bias.map(wide), ..mask },
        position_bias: position_bias.map(wide),
        scaling: shape.scaling,
        weights_wanted,
    };
    let (output, weights) = context.implementation().attend(inputs);
    match is_narrow {
        true => (merge_heads(output.cast(dtype)), weights.map(|weights| weights.cast(dtype))),
        false => (merge_heads(output), weights),
    }
}
