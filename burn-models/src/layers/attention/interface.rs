use super::{Attention, AttentionOutput, eager_attention, sdpa_attention};
use crate::config::ConfigError;
use crate::layers::named::{Named, Refused};
use crate::layers::{AttentionMask, MaskRequest, eager_mask, sdpa_mask};
use std::fmt;
use std::sync::{Arc, LazyLock};
use thiserror::Error;

/// The implementation that a config chooses by saying nothing.
pub const DEFAULT_ATTENTION: &str = "sdpa";

/// Computes attention; see [`eager_attention`] for what is expected of it.
pub type AttentionFunction = Arc<dyn Fn(Attention) -> AttentionOutput + Send + Sync>;

/// Makes the mask that an [`AttentionFunction`] takes; see [`eager_mask`].
pub type MaskFunction = Arc<dyn Fn(&MaskRequest) -> AttentionMask + Send + Sync>;

/// An attention function and the mask function that belongs to it.
#[derive(Clone)]
pub struct AttentionImplementation {
    attention: AttentionFunction,
    mask: MaskFunction,
}

impl AttentionImplementation {
    /// From both functions.
    pub fn new(
        attention: impl Fn(Attention) -> AttentionOutput + Send + Sync + 'static,
        mask: impl Fn(&MaskRequest) -> AttentionMask + Send + Sync + 'static,
    ) -> Self {
        Self { attention: Arc::new(attention), mask: Arc::new(mask) }
    }

    /// Computes attention.
    pub fn attend(&self, inputs: Attention) -> AttentionOutput {
        (self.attention)(inputs)
    }

    /// Makes a mask.
    pub fn mask(&self, request: &MaskRequest) -> AttentionMask {
        (self.mask)(request)
    }
}

impl fmt::Debug for AttentionImplementation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttentionImplementation").finish_non_exhaustive()
    }
}

/// Why an implementation was not registered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RegisterAttentionError {
    /// The name is taken.
    #[error("attention implementation `{0}` is already registered: pass `overwrite` to replace it")]
    Taken(String),
    /// The name belongs to an implementation that comes along.
    #[error("attention implementation `{0}` is built in and cannot be replaced: choose another name")]
    BuiltIn(String),
    /// The name says nothing.
    #[error("an attention implementation needs a name")]
    Empty,
}

/// All attention implementations by name: `eager`, `sdpa`, and those that the program registered.
///
/// Registered ones are seen by every model of the program whose config names them.
#[derive(Debug)]
pub struct AttentionInterface;

static REGISTERED: LazyLock<Named<AttentionImplementation>> = LazyLock::new(|| {
    Named::new([
        ("eager", AttentionImplementation::new(eager_attention, eager_mask)),
        ("sdpa", AttentionImplementation::new(sdpa_attention, sdpa_mask)),
    ])
});

impl AttentionInterface {
    /// Names of the implementations that come along.
    pub const BUILT_IN: [&'static str; 2] = ["eager", "sdpa"];

    /// Registers an attention function together with its mask function, so that causality cannot be forgotten.
    ///
    /// # Errors
    ///
    /// When the name is empty, built in, or taken and `overwrite` is `false`. Then nothing changes.
    pub fn register(
        name: impl Into<String>,
        implementation: AttentionImplementation,
        overwrite: bool,
    ) -> Result<(), RegisterAttentionError> {
        REGISTERED.register(name.into(), implementation, overwrite).map_err(|refused| match refused {
            Refused::Taken(name) => RegisterAttentionError::Taken(name),
            Refused::BuiltIn(name) => RegisterAttentionError::BuiltIn(name),
            Refused::Empty => RegisterAttentionError::Empty,
        })
    }

    /// The implementation called `name`, or the default one.
    ///
    /// # Errors
    ///
    /// [`ConfigError::UnknownAttention`] lists the choices.
    pub fn get(name: Option<&str>) -> Result<AttentionImplementation, ConfigError> {
        let name = name.unwrap_or(DEFAULT_ATTENTION);
        let unknown = || ConfigError::UnknownAttention { name: name.to_owned(), known: Self::names() };
        REGISTERED.get(name).ok_or_else(unknown)
    }

    /// Checks that `name` is one that [`get`](Self::get) knows.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn check(name: Option<&str>) -> Result<(), ConfigError> {
        Self::get(name).map(drop)
    }

    /// The names that a config may give, sorted.
    pub fn names() -> Vec<String> {
        REGISTERED.names()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_list_the_choices() {
        let error = AttentionInterface::check(Some("egaer")).map_err(|error| error.to_string());
        let Err(message) = error else { panic!("an unknown name was accepted") };
        assert!(message.contains("did you mean `eager`?"), "{message}");
        assert!(message.contains("eager, sdpa"), "{message}");
    }

    #[test]
    fn built_in_and_taken_names_are_refused() {
        let eager = || AttentionImplementation::new(eager_attention, eager_mask);
        let register = |name: &str, overwrite| AttentionInterface::register(name, eager(), overwrite);
        assert_eq!(register("sdpa", true), Err(RegisterAttentionError::BuiltIn("sdpa".to_owned())));
        assert_eq!(register("zz_mine", false), Ok(()));
        assert_eq!(register("zz_mine", false), Err(RegisterAttentionError::Taken("zz_mine".to_owned())));
        assert_eq!(register("zz_mine", true), Ok(()));
    }
}
