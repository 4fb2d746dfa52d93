//! A crate that depends on the root package alone.
#![deny(warnings)]
#![allow(dead_code, reason = "`tests/macros.rs` runs the model, this crate only builds it")]

use burnlens::prelude as prelude;
use burnlens::patching_core::capture;

#[path = "../../model.rs"]
mod model;
