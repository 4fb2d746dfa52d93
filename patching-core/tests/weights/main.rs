//! Loading and saving checkpoints.

#[path = "../support/mod.rs"]
mod support;

mod conversion;
mod copies;
mod layouts;
mod loading;
mod memory;
mod replacing;
mod round_trip;
mod saving;
mod slots;
mod ties;
mod wrappers;
