//! What several macros need.

mod errors;
mod names;
mod root;
mod signature;
mod types;

pub(crate) use errors::{Errors, Failure};
pub(crate) use names::{choices, did_you_mean};
pub(crate) use root::root;
pub(crate) use signature::{Argument, KWARGS, Request, arguments, refuse_qualifiers, request};
pub(crate) use types::{is_certainly_no_result, last_ident, last_segment, placed, readable, without_self};
