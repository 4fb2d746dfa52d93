use super::{Experts, batched_mm_experts, eager_experts, grouped_mm_experts};
use crate::config::ConfigError;
use crate::layers::named::{Named, Refused};
use burn::tensor::Tensor;
use std::fmt;
use std::sync::{Arc, LazyLock};
use thiserror::Error;

/// The implementation that a config chooses by saying nothing.
pub const DEFAULT_EXPERTS: &str = "grouped_mm";

/// Computes a mixture of experts; see [`Experts`] for what is expected of it.
pub type ExpertsFunction = Arc<dyn Fn(Experts) -> Tensor<2> + Send + Sync>;

/// An experts function that can be registered.
#[derive(Clone)]
pub struct ExpertsImplementation(ExpertsFunction);

impl ExpertsImplementation {
    /// From the function.
    pub fn new(experts: impl Fn(Experts) -> Tensor<2> + Send + Sync + 'static) -> Self {
        Self(Arc::new(experts))
    }

    /// Computes the mixture, `[tokens, hidden]`.
    pub fn mix(&self, inputs: Experts) -> Tensor<2> {
        let expected = inputs.hidden_states.dims();
        let mixed = (self.0)(inputs);
        assert_eq!(
            mixed.dims(),
            expected,
            "an experts implementation returns `[tokens, hidden]`, as it was given them"
        );
        mixed
    }
}

impl fmt::Debug for ExpertsImplementation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExpertsImplementation").finish_non_exhaustive()
    }
}

/// Why an implementation was not registered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RegisterExpertsError {
    /// The name is taken.
    #[error("experts implementation `{0}` is already registered: pass `overwrite` to replace it")]
    Taken(String),
    /// The name belongs to an implementation that comes along.
    #[error("experts implementation `{0}` is built in and cannot be replaced: choose another name")]
    BuiltIn(String),
    /// The name says nothing.
    #[error("an experts implementation needs a name")]
    Empty,
}

/// All experts implementations by name: `eager`, `grouped_mm`, `batched_mm`, and those that the program registered.
///
/// Registered ones are seen by every model of the program whose config names them.
///
/// ```
/// use burn_models::layers::experts::{Experts, ExpertsImplementation, ExpertsInterface, eager_experts};
/// ExpertsInterface::register("mine", ExpertsImplementation::new(|inputs: Experts| eager_experts(inputs)), false)?;
/// assert!(ExpertsInterface::names().contains(&"mine".to_owned()));
/// # Ok::<(), burn_models::layers::experts::RegisterExpertsError>(())
/// ```
#[derive(Debug)]
pub struct ExpertsInterface;

static REGISTERED: LazyLock<Named<ExpertsImplementation>> = LazyLock::new(|| {
    Named::new([
        ("batched_mm", ExpertsImplementation::new(batched_mm_experts)),
        ("eager", ExpertsImplementation::new(eager_experts)),
        ("grouped_mm", ExpertsImplementation::new(grouped_mm_experts)),
    ])
});

impl ExpertsInterface {
    /// Names of the implementations that come along.
    pub const BUILT_IN: [&'static str; 3] = ["batched_mm", "eager", "grouped_mm"];

    /// Registers an experts function.
    ///
    /// # Errors
    ///
    /// When the name is empty, built in, or taken and `overwrite` is `false`. Then nothing changes.
    pub fn register(
        name: impl Into<String>,
        implementation: ExpertsImplementation,
        overwrite: bool,
    ) -> Result<(), RegisterExpertsError> {
        REGISTERED.register(name.into(), implementation, overwrite).map_err(|refused| match refused {
            Refused::Taken(name) => RegisterExpertsError::Taken(name),
            Refused::BuiltIn(name) => RegisterExpertsError::BuiltIn(name),
            Refused::Empty => RegisterExpertsError::Empty,
        })
    }

    /// The implementation called `name`, or the default one.
    ///
    /// # Errors
    ///
    /// [`ConfigError::UnknownExperts`] lists the choices.
    pub fn get(name: Option<&str>) -> Result<ExpertsImplementation, ConfigError> {
        let name = name.unwrap_or(DEFAULT_EXPERTS);
        let unknown = || ConfigError::UnknownExperts { name: name.to_owned(), known: Self::names() };
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
        let error = ExpertsInterface::check(Some("groupedmm")).expect_err("unknown").to_string();
        assert!(error.contains("did you mean `grouped_mm`?"), "{error}");
        assert!(error.contains("batched_mm, eager, grouped_mm"), "{error}");
    }

    #[test]
    fn built_in_and_taken_names_are_refused() {
        let eager = || ExpertsImplementation::new(eager_experts);
        let register = |name: &str, overwrite| ExpertsInterface::register(name, eager(), overwrite);
        assert_eq!(register("eager", true), Err(RegisterExpertsError::BuiltIn("eager".to_owned())));
        assert_eq!(register("", true), Err(RegisterExpertsError::Empty));
        assert_eq!(register("zz_mine", false), Ok(()));
        assert_eq!(register("zz_mine", false), Err(RegisterExpertsError::Taken("zz_mine".to_owned())));
        assert_eq!(register("zz_mine", true), Ok(()));
    }
}
