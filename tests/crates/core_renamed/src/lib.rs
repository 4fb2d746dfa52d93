//! A crate that depends on the runtime alone, under another name.
#![deny(warnings)]
#![allow(dead_code, reason = "`tests/macros.rs` runs the model, this crate only builds it")]

use runtime::prelude as prelude;
use runtime::capture;

#[path = "../../model.rs"]
mod model;
