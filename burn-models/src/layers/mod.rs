//! What families share: each layer once, as functions that the families' own classes call.

mod activation;
pub mod attention;
mod cache;
mod classes;
mod context;
mod conv;
pub(crate) mod embedding;
pub mod experts;
mod gelu;
mod half;
mod head;
mod heads;
mod layer_norm;
mod linear;
mod loss;
mod mask;
#[cfg(feature = "flex")]
mod memory;
mod mlp;
pub mod moe;
mod named;
mod norm;
mod parameters;
mod pixels;
mod positions;
mod relative;
mod rotary;
mod swiglu;
mod tokens;
#[cfg(feature = "flex")]
mod vector;

pub use activation::Activation;
pub(crate) use cache::CacheFits;
pub use cache::{Cache, CacheLayer};
pub(crate) use classes::{patch_attention_class, patch_embeddings_class, rms_norm_class, rotary_class};
pub use context::{Causality, LayerContext, Stack};
pub use conv::{conv1d, new_conv1d, new_patch_projection, patch_projection};
pub use embedding::{embed, new_embedding};
pub use gelu::{gelu, gelu_tanh, quick_gelu};
pub use half::{finite, well_finite, wide_linear, wide_sum};
pub use head::{
    Pooled, first_marked, first_of, last_of, last_tokens, lm_logits, new_lm_head, one_of_each, select_positions,
    span_logits, tied_logits,
};
pub use heads::{merge_heads, split_heads};
pub use layer_norm::{layer_norm, new_layer_norm};
pub use linear::{linear, new_linear};
pub(crate) use loss::IGNORED;
pub use loss::{causal_lm_loss, classification_loss, contrastive_loss, span_loss, token_loss};
pub use mask::{AttentionMask, MaskRequest, eager_mask, sdpa_mask};
pub use mlp::{gated_mlp, plain_mlp};
pub use norm::rms_norm;
pub use parameters::{float_dtype_of, matrix_of};
pub use pixels::{PatchGrid, after_class_token, hide_patches};
pub use positions::stretched_positions;
pub use relative::RelativeBuckets;
pub use rotary::{Rotary, apply_rotary, inverse_frequencies, rotary_tables};
pub use swiglu::{gated_halves, silu_gated};
pub use tokens::{Extent, Tokens, checked_indices, embedded, given_embeds};
