//! A crate that depends on the root package alone.
#![deny(warnings)]

use burnlens::prelude as prelude;
use burnlens::patching_core::capture;

#[path = "../../model.rs"]
mod model;
