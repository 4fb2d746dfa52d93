//! Requests for the parts of a model, made of what the caller asked of the whole.

use super::{Model, Tower};
use patching_core::capture::Flag;
use patching_core::prelude::*;

/// The request to the base model `M` of a head that gives an `O`: what `O` has no field for is left out, whether it would
/// follow another key or the config says so. What the caller asks for by name stays, to be an error rather than missing.
pub(crate) fn with_fields<M: Tower, O: ModelOutput>(kwargs: &ForwardKwargs) -> ForwardKwargs {
    let absent = M::Output::KEYS.iter().filter(|key| !O::KEYS.contains(key));
    let unnamed = absent.filter(|key| *kwargs.flag(key) == Flag::Unset);
    unnamed.fold(kwargs.clone(), |kwargs, key| kwargs.output(*key, false))
}

/// A request that records nothing in an `M`, whatever the config says.
pub(crate) fn records_nothing<M: Model>() -> ForwardKwargs {
    M::recordable_keys().into_iter().fold(ForwardKwargs::new(), |kwargs, key| kwargs.output(key, false))
}
