//! A crate that depends on the runtime alone, under another name.
#![deny(warnings)]

use runtime::prelude as prelude;
use runtime::capture;

#[path = "../../model.rs"]
mod model;
