//! Record, replace and convert the inside of transformer models on Burn, as one dependency.

pub use burn_models;
// The macros name the runtime by its path, also through this crate.
pub use patching_core;
pub use patching_core::prelude;
