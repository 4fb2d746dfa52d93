//! A crate that depends on the root package alone, under another name.
#![deny(warnings)]

use lens::prelude as prelude;
use lens::patching_core::capture;

#[path = "../../model.rs"]
mod model;
