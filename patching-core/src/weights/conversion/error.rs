//! What can be wrong with a mapping, before any checkpoint is seen.

use thiserror::Error;

use crate::names::did_you_mean;

/// A mapping cannot be used or registered. Nothing of it was registered.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConversionError {
    /// A rule that cannot work.
    #[error("the rule {rule} cannot be used: {reason}")]
    InvalidRule {
        /// The rule, as text.
        rule: String,
        /// Why not.
        #[source]
        reason: RuleError,
    },
    /// A name that has a mapping already.
    #[error(
        "conversions of `{name}` are registered already: unregister them first, or replace them with `register_checkpoint_conversion_mapping_with(…, true)`"
    )]
    AlreadyRegistered {
        /// The model type or class name.
        name: String,
    },
    /// A name that nothing is registered for.
    #[error("no conversions are registered for `{name}`{}", did_you_mean(&near.iter().map(String::as_str).collect::<Vec<_>>()))]
    NotRegistered {
        /// The name.
        name: String,
        /// Names that look like it.
        near: Vec<String>,
    },
    /// A name that two linked crates have built in mappings for.
    #[error(
        "two crates of this program have built in conversions of `{name}`, expected one; register those that are meant"
    )]
    BuiltInTwice {
        /// The model type or class name.
        name: String,
    },
    /// A mapping registered for nothing.
    #[error("the name to register conversions for is empty, expected a model type or a class name")]
    EmptyName,
}

crate::__debug_as_display!(ConversionError);

/// Why a rule cannot work.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RuleError {
    /// A pattern of nothing.
    #[error("the pattern `{pattern}` is empty, expected one or more segments")]
    EmptyPattern {
        /// The pattern.
        pattern: String,
    },
    /// Two dots with nothing between them.
    #[error("the pattern `{pattern}` has an empty segment")]
    EmptySegment {
        /// The pattern.
        pattern: String,
    },
    /// A star that is only a part of a segment.
    #[error("`{segment}` in the pattern `{pattern}` is neither a name nor `*`, which stands for one whole segment")]
    PartialStar {
        /// The pattern.
        pattern: String,
        /// The segment.
        segment: String,
    },
    /// A regular expression that is none.
    #[error("`{expression}` is not a regular expression: {reason}")]
    Expression {
        /// The expression.
        expression: String,
        /// The reason given.
        reason: String,
    },
    /// A replacement that names a group that its expression does not have.
    #[error("the replacement `{replacement}` names the group `{group}`, but `{expression}` has {known}")]
    UnknownGroup {
        /// The replacement.
        replacement: String,
        /// The group.
        group: String,
        /// The expression.
        expression: String,
        /// The groups that there are, in words.
        known: String,
    },
    /// A replacement with a lone dollar sign.
    #[error(
        "`$` in the replacement `{replacement}` names no group; write `$1`, `${{name}}`, or `$$` for the character"
    )]
    LoneDollar {
        /// The replacement.
        replacement: String,
    },
    /// No source patterns.
    #[error("it has no source patterns")]
    NoSources,
    /// No target patterns.
    #[error("it has no target patterns")]
    NoTargets,
    /// Nothing to do.
    #[error("it has no operations; `WeightRenaming` is for keys that only change their name")]
    NoOperations,
    /// The same source twice in one mapping.
    #[error("the source pattern `{pattern}` is in {other} already")]
    DuplicateSource {
        /// The pattern.
        pattern: String,
        /// Where else it is.
        other: String,
    },
    /// The same target twice in one rule.
    #[error("the target pattern `{pattern}` is there twice")]
    DuplicateTarget {
        /// The pattern.
        pattern: String,
    },
    /// Stars that do not go together.
    #[error("`{source_pattern}` has {found} stars and `{target_pattern}` has {target_stars}; {expected}")]
    Stars {
        /// A source pattern.
        source_pattern: String,
        /// Its stars.
        found: usize,
        /// A target pattern.
        target_pattern: String,
        /// Its stars.
        target_stars: usize,
        /// How many there should be, in words.
        expected: &'static str,
    },
    /// Operations that end with another number of tensors than there are targets.
    #[error("its operations make {made} of {sources} sources, expected {targets}, one for each target")]
    Count {
        /// Tensors that the operations make.
        made: usize,
        /// Source patterns.
        sources: usize,
        /// Target patterns.
        targets: usize,
    },
    /// An operation that cannot stand where it does.
    #[error("{operation} {reason}")]
    Operation {
        /// The operation.
        operation: String,
        /// Why not.
        reason: String,
    },
}
