//! From a model's tensors back to those of its checkpoint.
//!
//! What a load did is read backwards. Where there was no load, keys and shapes are proposed that the rules would make
//! the model's tensors of; the rules are then applied to these, as in a load, and what they do is read backwards. So
//! nothing is written that would not load again.

mod shapes;

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use self::shapes::{Unknown, source_shapes};
use super::assembly::{Assembly, count};
use super::memory::{LoadedLayout, Remembered};
use super::problem::{ConversionProblem, with_shapes};
use super::resolve::{Resolution, Tensor, Wanted, resolve};
use super::rules::{Bound, GroupName, RuleSet, Side, index};
use crate::weights::keys::PrefixChange;
use crate::weights::report::{ConvertedKey, RenamedKey, quoted};

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
        "`{key}` {shape:?} cannot be undone by the rule {rule}: {operation}: {reason}; correct the rule, or save with \
         `CheckpointLayout::Model`"
    )]
    Operation {
        /// The parameter's key.
        key: String,
        /// Its shape, as in a checkpoint.
        shape: Vec<usize>,
        /// The rule.
        rule: String,
        /// The operation.
        operation: String,
        /// Why not.
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

/// A tensor to be written.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) key: String,
    /// The model's tensors that it is made of.
    pub(crate) parts: Vec<usize>,
    /// How; `None` where it is one of them as it is.
    pub(crate) assembly: Option<Assembly>,
}

/// What is to be written for a model.
#[derive(Debug, Default)]
pub(crate) struct Restored {
    pub(crate) written: Vec<Written>,
    pub(crate) converted: Vec<ConvertedKey>,
    pub(crate) renamed: Vec<RenamedKey>,
}

/// What is known for undoing a load.
pub(crate) struct Known<'a> {
    pub(crate) loaded: Option<&'a LoadedLayout>,
    pub(crate) rules: &'a RuleSet,
    /// The parameters of the model as it is without patches, with their shapes as in a checkpoint.
    pub(crate) unpatched: &'a dyn Fn() -> &'a BTreeMap<String, Vec<usize>>,
}

/// Makes the tensors of a checkpoint of the model's `tensors`.
pub(crate) fn restore(tensors: &[Tensor<'_>], known: &Known<'_>) -> Result<Restored, RestoreError> {
    let mut restored = Restored::default();
    let mut done = vec![false; tensors.len()];
    let by_key: BTreeMap<&str, usize> = tensors.iter().enumerate().map(|(at, tensor)| (tensor.key, at)).collect();
    if let Some(loaded) = known.loaded {
        for remembered in &loaded.made {
            let parts = parts_of(remembered, tensors, &by_key, &done);
            if let Some(parts) = parts {
                let assemblies: Vec<_> = remembered.targets.iter().map(|(_, assembly)| assembly).collect();
                read_backwards(
                    &remembered.sources,
                    &parts,
                    &assemblies,
                    tensors,
                    &remembered.operations,
                    &mut restored,
                )?;
                mark(&mut done, &parts);
            }
        }
        for (at, tensor) in tensors.iter().enumerate() {
            if !is_done(&done, at) && loaded.direct.contains(tensor.key) {
                restored.written.push(Written { key: tensor.key.to_owned(), parts: vec![at], assembly: None });
                mark(&mut done, &[at]);
            }
        }
    }
    let rest: Vec<usize> = (0..tensors.len()).filter(|&at| !is_done(&done, at)).collect();
    by_rules(tensors, &rest, known, &mut restored)?;
    restored.written.sort_by_key(|written| written.parts.first().copied());
    Ok(restored)
}

fn is_done(done: &[bool], at: usize) -> bool {
    done.get(at).copied().unwrap_or_default()
}

fn mark(done: &mut [bool], parts: &[usize]) {
    for &part in parts {
        if let Some(done) = done.get_mut(part) {
            *done = true;
        }
    }
}

/// The tensors that were loaded together, if all of them are still there and as they were.
fn parts_of(
    remembered: &Remembered,
    tensors: &[Tensor<'_>],
    by_key: &BTreeMap<&str, usize>,
    done: &[bool],
) -> Option<Vec<usize>> {
    let part = |(key, assembly): &(String, Assembly)| {
        let at = *by_key.get(key.as_str())?;
        let same = tensors.get(at)?.shape == assembly.shape;
        (same && !is_done(done, at)).then_some(at)
    };
    remembered.targets.iter().map(part).collect()
}

/// Makes `sources` of the tensors `parts`, which were made of them by `assemblies`.
fn read_backwards(
    sources: &[(String, Vec<usize>)],
    parts: &[usize],
    assemblies: &[&Assembly],
    tensors: &[Tensor<'_>],
    operations: &[String],
    restored: &mut Restored,
) -> Result<(), RestoreError> {
    let stored: Vec<_> = parts.iter().filter_map(|&part| tensors.get(part)).collect();
    if let Some(first) = stored.first()
        && let Some((key, _)) = sources.first()
        && stored.iter().any(|other| other.dtype != first.dtype)
    {
        let parts = stored.iter().map(|tensor| format!("`{}` of {}", tensor.key, tensor.dtype)).collect();
        return Err(RestoreError::Dtypes { key: key.clone(), parts });
    }
    for (number, (key, shape)) in sources.iter().enumerate() {
        let mut assembly = Assembly::backwards(assemblies.iter().copied(), number, shape.clone());
        if Some(assembly.covered()) != count(shape) {
            let reason = format!("`{key}` {shape:?} is not all in {}", quoted(&names(&stored)));
            return Err(RestoreError::NotReversible { reasons: vec![reason] });
        }
        // Only the parts that this one is made of, numbered anew.
        let used: BTreeSet<usize> = assembly.pieces.iter().map(|piece| piece.source).collect();
        let numbers: BTreeMap<usize, usize> = used.iter().enumerate().map(|(new, &old)| (old, new)).collect();
        for piece in &mut assembly.pieces {
            piece.source = numbers.get(&piece.source).copied().unwrap_or_default();
        }
        let mut used: Vec<usize> = used.iter().filter_map(|&part| parts.get(part).copied()).collect();
        if used.is_empty() {
            // Nothing to copy into a tensor without elements, but its element type has to come from somewhere.
            used.extend(parts.first());
        }
        let whole = assembly.is_whole().filter(|_| used.len() == 1);
        let as_it_is = used.first().and_then(|&part| tensors.get(part)).is_some_and(|part| part.shape == shape);
        let assembly = if whole.is_some() && as_it_is { None } else { Some(assembly) };
        restored.written.push(Written { key: key.clone(), parts: used, assembly });
    }
    if operations.is_empty() {
        let pairs = stored.iter().zip(sources).filter(|(tensor, (key, _))| tensor.key != key);
        restored
            .renamed
            .extend(pairs.map(|(tensor, (key, _))| RenamedKey { from: tensor.key.to_owned(), to: key.clone() }));
    } else {
        restored.converted.push(ConvertedKey {
            sources: names(&stored),
            targets: sources.iter().map(|(key, _)| key.clone()).collect(),
            operations: operations.iter().rev().map(|operation| format!("inverse of {operation}")).collect(),
        });
    }
    Ok(())
}

fn names(tensors: &[&Tensor<'_>]) -> Vec<String> {
    tensors.iter().map(|tensor| tensor.key.to_owned()).collect()
}

/// A tensor that a checkpoint might have.
struct Proposed {
    key: String,
    shape: Vec<usize>,
    dtype: String,
}

/// Restores the tensors `rest`, which no load is remembered of, by the rules.
fn by_rules(
    tensors: &[Tensor<'_>],
    rest: &[usize],
    known: &Known<'_>,
    restored: &mut Restored,
) -> Result<(), RestoreError> {
    let as_they_are = |restored: &mut Restored| {
        for &at in rest {
            if let Some(tensor) = tensors.get(at) {
                restored.written.push(Written { key: tensor.key.to_owned(), parts: vec![at], assembly: None });
            }
        }
    };
    if known.rules.is_empty() || rest.is_empty() {
        as_they_are(restored);
        return Ok(());
    }
    let stored: Vec<&Tensor<'_>> = rest.iter().filter_map(|&at| tensors.get(at)).collect();
    let proposed = propose(&stored, known)?;
    let views: Vec<Tensor<'_>> = proposed
        .iter()
        .map(|proposed| Tensor { key: &proposed.key, shape: &proposed.shape, dtype: proposed.dtype.clone() })
        .collect();
    let wanted: Wanted<'_> = stored.iter().map(|tensor| (tensor.key, tensor.shape)).collect();
    let resolution = resolve(known.rules, &PrefixChange::new(""), &views, &wanted);
    verify(&resolution, &views, &wanted)?;

    let by_key: BTreeMap<&str, usize> = rest.iter().filter_map(|&at| Some((tensors.get(at)?.key, at))).collect();
    let part = |key: &str| by_key.get(key).copied();
    for direct in &resolution.direct {
        if let (Some(view), Some(at)) = (views.get(direct.tensor), part(&direct.target)) {
            if view.key != direct.target {
                restored.renamed.push(RenamedKey { from: direct.target.clone(), to: view.key.to_owned() });
            }
            restored.written.push(Written { key: view.key.to_owned(), parts: vec![at], assembly: None });
        }
    }
    for made in &resolution.made {
        let sources: Vec<_> = made.tensors.iter().filter_map(|&at| views.get(at)).collect();
        let sources: Vec<_> = sources.iter().map(|view| (view.key.to_owned(), view.shape.to_vec())).collect();
        let parts: Vec<_> = made.targets.iter().filter_map(|(key, _)| part(key)).collect();
        let assemblies: Vec<_> = made.targets.iter().map(|(_, assembly)| assembly).collect();
        read_backwards(&sources, &parts, &assemblies, tensors, &made.operations, restored)?;
    }
    Ok(())
}

/// Whether the rules make all of the model of what was proposed.
fn verify(resolution: &Resolution, proposed: &[Tensor<'_>], wanted: &Wanted<'_>) -> Result<(), RestoreError> {
    let problems = resolution.problems.iter().filter(|problem| !matches!(problem, ConversionProblem::Unmatched { .. }));
    let mut reasons: Vec<_> = problems.map(ToString::to_string).collect();
    for mismatch in &resolution.mismatched {
        reasons.push(format!(
            "`{}` {:?} would come back as {:?} from {}",
            mismatch.key,
            mismatch.model_shape,
            mismatch.file_shape,
            with_shapes(&mismatch.sources)
        ));
    }
    for direct in &resolution.direct {
        let shape = proposed.get(direct.tensor).map(|tensor| tensor.shape);
        if shape != wanted.get(direct.target.as_str()).copied() {
            reasons.push(format!("`{}` would come back with the shape {shape:?}", direct.target));
        }
    }
    let unexpected: Vec<_> = resolution.unexpected.iter().filter_map(|&at| proposed.get(at)).collect();
    if !unexpected.is_empty() {
        reasons.push(format!("nothing would take {}", quoted(&names(&unexpected))));
    }
    let made = resolution.made.iter().flat_map(|made| made.targets.iter().map(|(key, _)| key.as_str()));
    let reached: BTreeSet<&str> = resolution.direct.iter().map(|direct| direct.target.as_str()).chain(made).collect();
    let failed = |key: &str| resolution.failed.contains(key);
    let lost: Vec<_> =
        wanted.keys().filter(|key| !reached.contains(**key) && !failed(key)).map(|key| (*key).to_owned()).collect();
    if !lost.is_empty() {
        reasons.push(format!("nothing would become {}", quoted(&lost)));
    }
    if reasons.is_empty() { Ok(()) } else { Err(RestoreError::NotReversible { reasons }) }
}

/// The tensors of the targets of a converter, by target and by index.
type Targets<'t> = BTreeMap<usize, BTreeMap<usize, &'t Tensor<'t>>>;

/// Keys and shapes that the rules may make `tensors` of.
fn propose(tensors: &[&Tensor<'_>], known: &Known<'_>) -> Result<Vec<Proposed>, RestoreError> {
    let bound = known.rules.bind(tensors.iter().map(|tensor| tensor.key));
    let mut groups = BTreeMap::<GroupName, Targets<'_>>::new();
    let mut proposed = Vec::new();
    let as_it_is = |tensor: &Tensor<'_>| Proposed {
        key: tensor.key.to_owned(),
        shape: tensor.shape.to_vec(),
        dtype: tensor.dtype.clone(),
    };
    for tensor in tensors {
        let member =
            bound.iter().enumerate().find_map(|(at, rule)| Some((at, rule.member(tensor.key, Side::Targets)?)));
        let member = member.and_then(|(at, (target, member))| {
            let place = match member.index {
                None => 0,
                Some(segment) => index(segment)?,
            };
            Some((GroupName::new(at, &member), target, place))
        });
        match member {
            Some((group, target, place)) => {
                groups.entry(group).or_default().entry(target).or_default().insert(place, tensor);
            }
            None => proposed.push(as_it_is(tensor)),
        }
    }
    for (name, targets) in &groups {
        let Some((rule, converter)) = bound.get(name.rule).and_then(|rule| Some((rule, rule.converter()?))) else {
            continue;
        };
        let all = || targets.values().flat_map(BTreeMap::values);
        let whole = targets.len() == converter.targets.len()
            && targets.values().all(|items: &BTreeMap<_, _>| items.keys().copied().eq(0..items.len()));
        if !whole {
            // Something of another name that a pattern happens to fit.
            proposed.extend(all().map(|tensor| as_it_is(tensor)));
            continue;
        }
        let shapes =
            targets.values().map(|items| items.values().map(|tensor| tensor.shape.to_vec()).collect()).collect();
        let key = |source: usize, index: usize| name.key(rule, Side::Sources, source, index);
        let shapes = source_shapes(converter, shapes, &key, known.unpatched).map_err(|unknown| {
            let first = all().next();
            let key = first.map_or_else(String::new, |tensor| tensor.key.to_owned());
            let shape = first.map_or_else(Vec::new, |tensor| tensor.shape.to_vec());
            let rule = rule.rule.transform.to_string();
            match unknown {
                Unknown::Sizes(reason) => RestoreError::Sizes { key, shape, rule, reason },
                Unknown::Operation { operation, reason } => {
                    RestoreError::Operation { key, shape, rule, operation, reason }
                }
            }
        })?;
        let dtype = all().next().map(|tensor| tensor.dtype.clone()).unwrap_or_default();
        for (source, shapes) in shapes.into_iter().enumerate() {
            for (index, shape) in shapes.into_iter().enumerate() {
                proposed.push(Proposed { key: key(source, index), shape, dtype: dtype.clone() });
            }
        }
    }
    for tensor in &mut proposed {
        undo_renamings(&bound, &mut tensor.key)?;
    }
    Ok(proposed)
}

fn undo_renamings(bound: &[Bound<'_>], key: &mut String) -> Result<(), RestoreError> {
    for rule in bound.iter().rev() {
        let Some((renaming, inner)) = rule.renaming().and_then(|renaming| Some((renaming, rule.inner(key)?))) else {
            continue;
        };
        match renaming.undo(inner) {
            Ok(Some(before)) => *key = rule.outer(&before),
            Ok(None) => {}
            // What a checkpoint need not have, it need not get.
            Err(_) if rule.rule.optional => {}
            Err(reason) => {
                let (rule, reason) = (rule.rule.transform.to_string(), reason.to_owned());
                return Err(RestoreError::NoInverse { key: key.clone(), rule, reason });
            }
        }
    }
    Ok(())
}
