//! What keeps a conversion from being done, found before anything is read.

use std::fmt;

use crate::weights::report::quoted;

/// Keys that a message names; of more it says how many.
const NAMED: usize = 8;

/// A reason why a conversion cannot be done.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConversionProblem {
    /// Several tensors of the checkpoint for one parameter.
    Collision {
        /// The parameter's key.
        target: String,
        /// For each claim the tensors that it is made of.
        sources: Vec<Vec<String>>,
    },
    /// Tensors that a parameter is made of, but that the checkpoint does not have.
    MissingSources {
        /// The parameters' keys.
        targets: Vec<String>,
        /// Keys that are not there; not all of them, if they are many.
        missing: Vec<String>,
        /// How many are not there.
        count: usize,
        /// How many are.
        found: usize,
        /// Keys of the checkpoint that look like those missing.
        near: Vec<String>,
    },
    /// More tensors of a module list than the parameter has room for.
    TooMany {
        /// The parameters' keys.
        targets: Vec<String>,
        /// Keys that there is no room for; not all of them, if they are many.
        surplus: Vec<String>,
        /// How many have no room.
        count: usize,
        /// How many have.
        expected: usize,
    },
    /// An index of a module list that is not a number.
    NotAnIndex {
        /// The key.
        key: String,
        /// What stands for the index.
        segment: String,
    },
    /// A rule that nothing in the checkpoint has to do with.
    Unmatched {
        /// The rule.
        rule: String,
        /// Parts of keys that look like its patterns.
        near: Vec<String>,
    },
    /// A tensor that fits transposed and as it is.
    AmbiguousTranspose {
        /// The parameters' keys.
        targets: Vec<String>,
        /// The tensors with their shapes.
        sources: Vec<(String, Vec<usize>)>,
        /// The shape that fits both ways.
        shape: Vec<usize>,
        /// The one dimension.
        dim0: usize,
        /// The other.
        dim1: usize,
    },
    /// An operation that does not fit its tensors.
    Operation {
        /// The parameters' keys.
        targets: Vec<String>,
        /// The tensors with their shapes.
        sources: Vec<(String, Vec<usize>)>,
        /// The operation.
        operation: String,
        /// Why it does not fit.
        reason: String,
    },
    /// Tensors of different element types for one parameter.
    Dtypes {
        /// The parameters' keys.
        targets: Vec<String>,
        /// A tensor for each element type.
        sources: Vec<(String, String)>,
    },
    /// A rule that makes something the model has, and something that it has not.
    UnknownTarget {
        /// The rule.
        rule: String,
        /// The key that is no parameter.
        target: String,
        /// Parameters that look alike.
        near: Vec<String>,
    },
}

impl fmt::Display for ConversionProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Collision { target, sources } => {
                let claims: Vec<_> = sources.iter().map(|sources| listed(sources.iter(), sources.len())).collect();
                write!(formatter, "`{target}` is made twice: from {}", claims.join(" and from "))
            }
            Self::MissingSources { targets, missing, count, found, near } => {
                let missing = listed(missing.iter(), *count);
                write!(formatter, "{} has {found} of its tensors, but not {missing}", quoted(targets))?;
                if near.is_empty() { Ok(()) } else { write!(formatter, "; the checkpoint has {}", quoted(near)) }
            }
            Self::TooMany { targets, surplus, count, expected } => {
                let surplus = listed(surplus.iter(), *count);
                write!(formatter, "{} has room for {expected} of a list, and none for {surplus}", quoted(targets))
            }
            Self::NotAnIndex { key, segment } => {
                write!(formatter, "`{segment}` in `{key}` is not a number, expected the index in a module list")
            }
            Self::Unmatched { rule, near } => {
                write!(formatter, "the rule {rule} matches nothing in the checkpoint")?;
                if near.is_empty() { Ok(()) } else { write!(formatter, ", which has {}", quoted(near)) }
            }
            Self::AmbiguousTranspose { targets, sources, shape, dim0, dim1 } => write!(
                formatter,
                "{} from {}: dimensions {dim0} and {dim1} of {shape:?} would fit exchanged and as they are, so it cannot \
                 be told whether to transpose; leave out `if_needed`, or the operation",
                quoted(targets),
                with_shapes(sources)
            ),
            Self::Operation { targets, sources, operation, reason } => {
                write!(formatter, "{} from {}: {operation}: {reason}", quoted(targets), with_shapes(sources))
            }
            Self::Dtypes { targets, sources } => {
                let types: Vec<_> = sources.iter().map(|(key, dtype)| format!("`{key}` of {dtype}")).collect();
                write!(formatter, "{} from tensors of different types: {}", quoted(targets), types.join(", "))
            }
            Self::UnknownTarget { rule, target, near } => {
                write!(formatter, "the rule {rule} makes `{target}`, which the model does not have")?;
                if near.is_empty() { Ok(()) } else { write!(formatter, "; it has {}", quoted(near)) }
            }
        }
    }
}

/// Some names, and how many more.
fn listed<'a>(names: impl Iterator<Item = &'a String>, count: usize) -> String {
    let named: Vec<_> = names.take(NAMED).map(|name| format!("`{name}`")).collect();
    match count.saturating_sub(named.len()) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

pub(crate) fn with_shapes(sources: &[(String, Vec<usize>)]) -> String {
    let named: Vec<_> = sources.iter().take(NAMED).map(|(key, shape)| format!("`{key}` {shape:?}")).collect();
    match sources.len().saturating_sub(named.len()) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}
