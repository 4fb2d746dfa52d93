//! Attention: what every implementation is given, the two that come along, and the registry of all.

#[cfg(feature = "flex")]
mod bias;
mod call;
mod eager;
mod interface;
#[cfg(feature = "flex")]
mod running;
mod sdpa;
#[cfg(feature = "flex")]
mod tiled;
#[cfg(all(test, feature = "flex"))]
mod tiled_tests;

pub use call::{
    Attention, AttentionOutput, AttentionShape, Extra, cross_attention, cross_project, cross_query, project,
    self_attention, self_attention_with,
};
pub use eager::eager_attention;
pub use interface::{
    AttentionFunction, AttentionImplementation, AttentionInterface, DEFAULT_ATTENTION, MaskFunction,
    RegisterAttentionError,
};
pub use sdpa::sdpa_attention;
