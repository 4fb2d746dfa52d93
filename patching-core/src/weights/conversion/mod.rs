//! Making parameters of tensors that a checkpoint names or lays out differently, and the way back.
//!
//! Rules say what is made of what ([`WeightConverter`], [`WeightRenaming`]). Before anything is read, `resolve` finds
//! which tensors go where and what is wrong. Operations are carried out on descriptions of tensors (`assembly`), so that
//! a whole chain is one copy into the final place, and can be read backwards when the model is saved.

mod assembly;
mod error;
mod expression;
mod inverse;
mod mapping;
mod memory;
mod operations;
mod pattern;
mod problem;
mod recipe;
mod registry;
mod resolve;
mod rules;
mod scatter;
mod steps;
mod transform;

pub use error::{ConversionError, RuleError};
pub use inverse::RestoreError;
pub use mapping::ConversionMapping;
pub use operations::{
    Chunk, Concatenate, ConversionOperation, MergeModulelist, PermuteForRope, Split, SplitModulelist, Transpose,
};
pub use problem::ConversionProblem;
pub use registry::{
    BuiltInConversion, clear_checkpoint_conversion_mapping, get_checkpoint_conversion_mapping,
    register_checkpoint_conversion_mapping, register_checkpoint_conversion_mapping_with,
    unregister_checkpoint_conversion_mapping,
};
pub use rules::Submodel;
pub use transform::{IntoPatterns, WeightConverter, WeightRenaming, WeightTransform};

pub(crate) use assembly::{Assembly, Piece, count};
pub(crate) use inverse::{Known, Written, restore};
pub(crate) use memory::{LoadedLayout, Remembered, Repeated, common, remember};
pub(crate) use problem::with_shapes;
pub(crate) use recipe::{Recipe, are_equal};
pub(crate) use registry::{built_in, is_built_in, registered, registered_names};
pub(crate) use resolve::{Direct, Tensor, Wanted, resolve};
pub(crate) use rules::RuleSet;
pub(crate) use scatter::{Copying, strides};
