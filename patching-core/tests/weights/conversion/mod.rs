//! Checkpoints that name or lay out tensors differently than the model: there and back.

mod bag;
mod deferred;
mod errors;
mod memory;
mod operations;
mod others;
mod properties;
mod registry;
mod saving;
mod scopes;
mod shared;
mod towers;
