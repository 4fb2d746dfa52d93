//! Mappings: lists of rules that were found to be right.

use std::fmt;
use std::sync::Arc;

use regex::Regex;

use super::error::{ConversionError, RuleError};
use super::expression::Expression;
use super::operations::{Concatenate, ConversionOperation, Parts};
use super::pattern::Pattern;
use super::transform::{RenamingForm, WeightConverter, WeightRenaming, WeightTransform};

/// A list of rules, each of which can work.
///
/// ```
/// use patching_core::weights::{Concatenate, ConversionMapping, WeightConverter, WeightRenaming, WeightTransform};
///
/// # fn main() -> Result<(), patching_core::weights::ConversionError> {
/// let mapping = ConversionMapping::new([
///     WeightTransform::from(WeightRenaming::new("attention", "self_attn")),
///     WeightConverter::new(["q_proj", "k_proj", "v_proj"], "qkv_proj").with(Concatenate::dim(0)).into(),
/// ])?;
/// assert_eq!(mapping.len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct ConversionMapping {
    rules: Vec<Arc<Rule>>,
}

impl ConversionMapping {
    /// Checks `rules`.
    ///
    /// # Errors
    ///
    /// When a rule cannot work, whatever the checkpoint; the error names the rule and the reason.
    pub fn new(rules: impl IntoIterator<Item = impl Into<WeightTransform>>) -> Result<Self, ConversionError> {
        let rules: Vec<_> =
            rules.into_iter().map(|rule| Rule::new(rule.into()).map(Arc::new)).collect::<Result<_, _>>()?;
        for (at, rule) in rules.iter().enumerate() {
            // Of all rules that match a key the first is taken, so this one would never be.
            let before = rules.get(..at).unwrap_or_default();
            let taken = |source: &Pattern| before.iter().find(|other| other.sources().any(|taken| taken == source));
            if let Some((source, other)) = rule.sources().find_map(|source| Some((source, taken(source)?))) {
                let (pattern, other) = (source.text().to_owned(), other.transform.to_string());
                return Err(rule.transform.invalid(RuleError::DuplicateSource { pattern, other }));
            }
        }
        Ok(Self { rules })
    }

    /// A mapping without rules.
    pub const fn empty() -> Self {
        Self { rules: Vec::new() }
    }

    /// How many rules there are.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rules in their order.
    pub fn transforms(&self) -> impl Iterator<Item = &WeightTransform> {
        self.rules.iter().map(|rule| &rule.transform)
    }

    pub(crate) fn rules(&self) -> &[Arc<Rule>] {
        &self.rules
    }
}

impl fmt::Display for ConversionMapping {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, transform) in self.transforms().enumerate() {
            write!(formatter, "{}{transform}", if number == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

/// A rule, checked and ready for use.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) transform: WeightTransform,
    pub(crate) optional: bool,
    /// Whether it is for names that a model only has if it was loaded with them.
    pub(crate) legacy: bool,
    pub(crate) kind: RuleKind,
}

#[derive(Debug)]
pub(crate) enum RuleKind {
    Renaming(Renaming),
    Converter(Converter),
}

#[derive(Debug)]
pub(crate) enum Renaming {
    Segments { source: Pattern, target: Pattern },
    Expression { forward: Expression, backward: Result<Expression, NoInverse> },
}

/// Why a renaming cannot be undone, and what it may have made.
#[derive(Debug)]
pub(crate) struct NoInverse {
    reason: String,
    /// Anything, where there is no expression for it.
    image: Option<Regex>,
}

impl NoInverse {
    fn may_have_made(&self, key: &str) -> bool {
        self.image.as_ref().is_none_or(|image| image.is_match(key))
    }
}

#[derive(Debug)]
pub(crate) struct Converter {
    pub(crate) sources: Vec<Pattern>,
    pub(crate) targets: Vec<Pattern>,
    pub(crate) operations: Vec<ConversionOperation>,
    /// Whether the last star of a source is the index in a module list.
    pub(crate) merges: bool,
    /// Whether the last star of a target is.
    pub(crate) splits: bool,
    /// The stars that sources and targets share.
    pub(crate) carried: usize,
}

impl Rule {
    fn new(transform: WeightTransform) -> Result<Self, ConversionError> {
        let checked = match &transform {
            WeightTransform::Renaming(renaming) => {
                Renaming::new(renaming).map(|checked| (RuleKind::Renaming(checked), renaming.optional))
            }
            WeightTransform::Converter(converter) => {
                Converter::new(converter).map(|checked| (RuleKind::Converter(checked), converter.optional))
            }
        };
        let legacy = matches!(&transform, WeightTransform::Renaming(renaming) if renaming.legacy);
        match checked {
            Ok((kind, optional)) => Ok(Self { transform, optional, legacy, kind }),
            Err(reason) => Err(transform.invalid(reason)),
        }
    }

    /// The source patterns of a converter.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &Pattern> {
        match &self.kind {
            RuleKind::Converter(converter) => converter.sources.as_slice(),
            RuleKind::Renaming(_) => &[],
        }
        .iter()
    }

    /// All source patterns, those of renamings too.
    pub(crate) fn sources_of_names(&self) -> impl Iterator<Item = &Pattern> {
        let own = match &self.kind {
            RuleKind::Renaming(Renaming::Segments { source, .. }) => Some(source),
            _ => None,
        };
        self.sources().chain(own)
    }
}

impl Renaming {
    fn new(renaming: &WeightRenaming) -> Result<Self, RuleError> {
        match &renaming.form {
            RenamingForm::Segments { source, target } => {
                let (source, target) = (Pattern::parse(source)?, Pattern::parse(target)?);
                if source.stars() != target.stars() {
                    return Err(stars(&source, &target, "a renaming carries each of them over"));
                }
                Ok(Self::Segments { source, target })
            }
            RenamingForm::Expression { expression, replacement, inverse } => {
                let forward = Expression::parse(expression, replacement)?;
                let backward = match inverse {
                    Some((expression, replacement)) => Ok(Expression::parse(expression, replacement)?),
                    None => forward.inverse().map_err(|reason| NoInverse { reason, image: forward.image() }),
                };
                Ok(Self::Expression { forward, backward })
            }
        }
    }

    /// `key` renamed, where the rule applies.
    pub(crate) fn apply(&self, key: &str) -> Option<String> {
        match self {
            Self::Segments { source, target } => replace(source, target, key),
            Self::Expression { forward, .. } => forward.apply(key),
        }
    }

    /// `key` as it was before, where the rule may have applied; an error where it may have, and that cannot be told.
    pub(crate) fn undo(&self, key: &str) -> Result<Option<String>, &str> {
        match self {
            Self::Segments { source, target } => Ok(replace(target, source, key)),
            Self::Expression { backward, .. } => match backward {
                Ok(backward) => Ok(backward.apply(key)),
                Err(unknown) if unknown.may_have_made(key) => Err(&unknown.reason),
                Err(_) => Ok(None),
            },
        }
    }

    /// Whether `key` may be a result of it.
    pub(crate) fn may_have_made(&self, key: &str) -> bool {
        match self {
            Self::Segments { target, .. } => target.find(key).is_some(),
            Self::Expression { backward: Ok(backward), .. } => backward.is_match(key),
            Self::Expression { backward: Err(unknown), .. } => unknown.may_have_made(key),
        }
    }
}

fn replace(source: &Pattern, target: &Pattern, key: &str) -> Option<String> {
    let found = source.find(key)?;
    Some(format!("{}{}{}", found.before, target.fill(found.stars.iter().copied()), found.after))
}

fn stars(source: &Pattern, target: &Pattern, expected: &'static str) -> RuleError {
    RuleError::Stars {
        source_pattern: source.text().to_owned(),
        found: source.stars(),
        target_pattern: target.text().to_owned(),
        target_stars: target.stars(),
        expected,
    }
}

impl Converter {
    fn new(converter: &WeightConverter) -> Result<Self, RuleError> {
        let parse =
            |patterns: &[String]| patterns.iter().map(|text| Pattern::parse(text)).collect::<Result<Vec<_>, _>>();
        let (sources, targets) = (parse(&converter.sources)?, parse(&converter.targets)?);
        let (Some(first_source), Some(first_target)) = (sources.first(), targets.first()) else {
            return Err(if sources.is_empty() { RuleError::NoSources } else { RuleError::NoTargets });
        };
        if let Some(pattern) = repeated(&sources) {
            return Err(RuleError::DuplicateSource { pattern, other: "the same rule".to_owned() });
        }
        if let Some(pattern) = repeated(&targets) {
            return Err(RuleError::DuplicateTarget { pattern });
        }
        if converter.operations.is_empty() {
            return Err(RuleError::NoOperations);
        }
        let (merges, splits) = check_operations(&converter.operations, sources.len(), targets.len())?;

        let expected = match (merges, splits) {
            (true, false) => "the sources of `MergeModulelist` have one more, the index in the list",
            (false, true) => "the targets of `SplitModulelist` have one more, the index in the list",
            (true, true) => "`MergeModulelist` and `SplitModulelist` both take the last one",
            (false, false) => "each of them is carried over",
        };
        let carried = first_source.stars().checked_sub(usize::from(merges));
        let carried = carried.filter(|carried| first_target.stars() == carried + usize::from(splits));
        let Some(carried) = carried else {
            return Err(stars(first_source, first_target, expected));
        };
        for source in &sources {
            if source.stars() != first_source.stars() {
                return Err(stars(source, first_target, expected));
            }
        }
        for target in &targets {
            if target.stars() != first_target.stars() {
                return Err(stars(first_source, target, expected));
            }
        }
        Ok(Self { sources, targets, operations: converter.operations.clone(), merges, splits, carried })
    }
}

fn repeated(patterns: &[Pattern]) -> Option<String> {
    let twice =
        patterns.iter().enumerate().find(|(at, pattern)| patterns.iter().take(*at).any(|other| other == *pattern));
    twice.map(|(_, pattern)| pattern.text().to_owned())
}

/// Whether the operations can follow each other; and whether they merge and split module lists.
fn check_operations(
    operations: &[ConversionOperation],
    sources: usize,
    targets: usize,
) -> Result<(bool, bool), RuleError> {
    let merges = operations.iter().any(|operation| matches!(operation, ConversionOperation::MergeModulelist(_)));
    // whether each tensor is one of a list
    let (mut listed, mut merged, mut split) = (merges, false, false);
    let mut made = sources;
    for operation in operations {
        let refuse = |reason: String| Err(RuleError::Operation { operation: operation.to_string(), reason });
        if split {
            return refuse("comes after `SplitModulelist`, expected before".to_owned());
        }
        match operation {
            ConversionOperation::Concatenate(Concatenate { parts, .. }) => {
                if let Parts::Sizes(sizes) = parts
                    && sizes.len() != made
                {
                    return refuse(format!("has {} sizes for {made} parts", sizes.len()));
                }
                made = 1;
            }
            ConversionOperation::Chunk(_) | ConversionOperation::Split(_) => {
                if made != 1 {
                    return refuse(format!("divides one tensor, but is given {made}"));
                }
                made = targets;
            }
            ConversionOperation::MergeModulelist(_) => {
                if merged {
                    return refuse("is there twice".to_owned());
                }
                (listed, merged) = (false, true);
            }
            ConversionOperation::SplitModulelist(_) => {
                if listed {
                    return refuse("is given a module list, expected a stack".to_owned());
                }
                split = true;
            }
            ConversionOperation::Transpose(transpose) => {
                if transpose.dim0 == transpose.dim1 {
                    return refuse("exchanges a dimension with itself".to_owned());
                }
            }
            ConversionOperation::PermuteForRope(permute) => {
                if let Some(head_dim) = permute.head_dim
                    && (head_dim == 0 || head_dim % 2 != 0)
                {
                    return refuse(format!("has heads of {head_dim} rows, expected an even number"));
                }
            }
        }
    }
    if made != targets {
        return Err(RuleError::Count { made, sources, targets });
    }
    Ok((merges, split))
}
