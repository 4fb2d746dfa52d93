//! Rules as their authors write them.

use std::fmt;

use super::error::{ConversionError, RuleError};
use super::expression::Expression;
use super::operations::ConversionOperation;

/// One or several patterns.
pub trait IntoPatterns {
    /// The patterns as text.
    fn into_patterns(self) -> Vec<String>;
}

impl IntoPatterns for &str {
    fn into_patterns(self) -> Vec<String> {
        vec![self.to_owned()]
    }
}

impl IntoPatterns for String {
    fn into_patterns(self) -> Vec<String> {
        vec![self]
    }
}

impl<S: Into<String>, const N: usize> IntoPatterns for [S; N] {
    fn into_patterns(self) -> Vec<String> {
        self.into_iter().map(Into::into).collect()
    }
}

impl<S: Into<String>> IntoPatterns for Vec<S> {
    fn into_patterns(self) -> Vec<String> {
        self.into_iter().map(Into::into).collect()
    }
}

impl<S: Clone + Into<String>> IntoPatterns for &[S] {
    fn into_patterns(self) -> Vec<String> {
        self.iter().cloned().map(Into::into).collect()
    }
}

/// Gives keys other names. All renamings that match a key change it, in their order.
#[derive(Debug, Clone)]
pub struct WeightRenaming {
    pub(crate) form: RenamingForm,
    pub(crate) optional: bool,
    pub(crate) legacy: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum RenamingForm {
    Segments { source: String, target: String },
    Expression { expression: String, replacement: String, inverse: Option<(String, String)> },
}

impl WeightRenaming {
    /// Replaces the run of segments `source`, wherever it is in a key, by `target`. A `*` is one segment, carried over.
    pub fn new(source: impl Into<String>, target: impl Into<String>) -> Self {
        let form = RenamingForm::Segments { source: source.into(), target: target.into() };
        Self { form, optional: false, legacy: false }
    }

    /// Replaces the first place where `expression` is found by `replacement`, in which `$1` and `${name}` are groups.
    ///
    /// # Errors
    ///
    /// When the expression is none, or the replacement names a group that it does not have.
    pub fn regex(expression: impl Into<String>, replacement: impl Into<String>) -> Result<Self, ConversionError> {
        let (expression, replacement) = (expression.into(), replacement.into());
        let checked = Expression::parse(&expression, &replacement);
        let form = RenamingForm::Expression { expression, replacement, inverse: None };
        let renaming = Self { form, optional: false, legacy: false };
        match checked {
            Ok(_) => Ok(renaming),
            Err(reason) => Err(ConversionError::InvalidRule { rule: renaming.to_string(), reason }),
        }
    }

    /// Says how a renaming by a regular expression is undone, where that does not follow from the expression. It is
    /// checked with the mapping that the renaming becomes part of; renamings of segments need none and ignore it.
    #[must_use]
    pub fn with_inverse(mut self, expression: impl Into<String>, replacement: impl Into<String>) -> Self {
        if let RenamingForm::Expression { inverse, .. } = &mut self.form {
            *inverse = Some((expression.into(), replacement.into()));
        }
        self
    }

    /// Lets a checkpoint have nothing that it applies to.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Says that the names are ones that only old checkpoints have: others need not have them, and a model is saved with
    /// them only if it was loaded from such a one.
    #[must_use]
    pub fn legacy(mut self) -> Self {
        self.legacy = true;
        self.optional()
    }
}

impl fmt::Display for WeightRenaming {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.form {
            RenamingForm::Segments { source, target } => write!(formatter, "`{source}` -> `{target}`"),
            RenamingForm::Expression { expression, replacement, .. } => {
                write!(formatter, "/{expression}/ -> `{replacement}`")
            }
        }
    }
}

/// Makes tensors of the model from tensors of the checkpoint.
///
/// ```
/// use patching_core::weights::{Concatenate, MergeModulelist, WeightConverter};
///
/// let fused = WeightConverter::new(["q_proj", "k_proj", "v_proj"], "qkv_proj").with(Concatenate::dim(0));
/// let experts = WeightConverter::new(
///     ["mlp.experts.*.gate_proj.weight", "mlp.experts.*.up_proj.weight"],
///     "mlp.experts.gate_up_proj",
/// )
/// .with(MergeModulelist::dim(0))
/// .with(Concatenate::dim(1).equal());
/// # let _ = (fused, experts);
/// ```
///
/// A pattern is a run of whole segments found anywhere in a key; `*` is one segment. What comes before and after the
/// run is carried over, so that `q_proj` serves `q_proj.weight` and `q_proj.bias`, each on its own. Stars of the targets
/// take those of the sources from the left. Of all converters that match a key, the first is taken.
#[derive(Debug, Clone)]
pub struct WeightConverter {
    pub(crate) sources: Vec<String>,
    pub(crate) targets: Vec<String>,
    pub(crate) operations: Vec<ConversionOperation>,
    pub(crate) optional: bool,
}

impl WeightConverter {
    /// A converter from keys of the checkpoint to those of the model; one pattern or several of each.
    pub fn new(sources: impl IntoPatterns, targets: impl IntoPatterns) -> Self {
        let (sources, targets) = (sources.into_patterns(), targets.into_patterns());
        Self { sources, targets, operations: Vec::new(), optional: false }
    }

    /// Does `operation` next.
    #[must_use]
    pub fn with(mut self, operation: impl Into<ConversionOperation>) -> Self {
        self.operations.push(operation.into());
        self
    }

    /// Lets a checkpoint have nothing that it applies to.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }
}

impl fmt::Display for WeightConverter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = crate::weights::report::quoted;
        write!(formatter, "{} -> {}", quoted(&self.sources), quoted(&self.targets))
    }
}

/// A rule of a mapping.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum WeightTransform {
    /// Gives keys other names.
    Renaming(WeightRenaming),
    /// Makes tensors from others.
    Converter(WeightConverter),
}

impl From<WeightRenaming> for WeightTransform {
    fn from(renaming: WeightRenaming) -> Self {
        Self::Renaming(renaming)
    }
}

impl From<WeightConverter> for WeightTransform {
    fn from(converter: WeightConverter) -> Self {
        Self::Converter(converter)
    }
}

impl fmt::Display for WeightTransform {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Renaming(renaming) => renaming.fmt(formatter),
            Self::Converter(converter) => converter.fmt(formatter),
        }
    }
}

impl WeightTransform {
    pub(crate) fn invalid(&self, reason: RuleError) -> ConversionError {
        ConversionError::InvalidRule { rule: self.to_string(), reason }
    }
}
