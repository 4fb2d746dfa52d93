//! Record, replace and convert the inside of transformer models on Burn.
#![forbid(unsafe_code)]

pub use burn_models;
pub use patching_core;

/// What a model author and a user need.
pub mod prelude {
    pub use patching_core::prelude::*;
}
