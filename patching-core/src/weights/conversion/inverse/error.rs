//! What keeps a conversion from being undone.

use thiserror::Error;

/// Why a model's tensors cannot be those of a checkpoint again.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// Parts that were joined, of sizes that are not known.
    #[error(
        "`{key}` {shape:?} cannot be divided again by the rule {rule}: {reason}; give them with \
         `Concatenate::dim(..).sizes([..])` or `.equal()`, or save with `CheckpointLayout::Model`"
    )]
    Sizes {
        /// The parameter's key.
        key: String,
        /// Its shape, as in a checkpoint.
        shape: Vec<usize>,
        /// The rule.
        rule: String,
        /// Why not.
        reason: String,
    },
    /// A parameter that an operation cannot have made.
    #[error(
        "`{key}` {shape:?} cannot be undone by the rule {rule}: {reason}; correct the rule, or save with \
         `CheckpointLayout::Model`"
    )]
    Operation {
        /// The parameter's key.
        key: String,
        /// Its shape, as in a checkpoint.
        shape: Vec<usize>,
        /// The rule.
        rule: String,
        /// The operation, and why not.
        reason: String,
    },
    /// A renaming that may have made a key, and that cannot be undone.
    #[error(
        "the rule {rule} cannot be undone for `{key}`: {reason}; say how with `WeightRenaming::with_inverse`, or save with \
         `CheckpointLayout::Model`"
    )]
    NoInverse {
        /// The key.
        key: String,
        /// The rule.
        rule: String,
        /// Why not.
        reason: String,
    },
    /// Parameters of different element types that would be one tensor.
    #[error("`{key}` would be made of parameters of different types: {}", parts.join(", "))]
    Dtypes {
        /// The key in the checkpoint.
        key: String,
        /// The parameters with their types.
        parts: Vec<String>,
    },
    /// Tensors that would not load again.
    #[error("what the rules make of the model would not load again: {}", reasons.join("; "))]
    NotReversible {
        /// Why not.
        reasons: Vec<String>,
    },
}
