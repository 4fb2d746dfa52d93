//! A crate that depends on the root package alone, under another name.
#![deny(warnings)]
#![allow(dead_code, reason = "`tests/macros.rs` runs the model, this crate only builds it")]

use lens::prelude as prelude;
use lens::patching_core::capture;

#[path = "../../model.rs"]
mod model;
