//! Recording and replacing the submodules of Burn models, and loading Hugging Face checkpoints into them.

extern crate self as patching_core;

pub mod class;
pub mod weights;
