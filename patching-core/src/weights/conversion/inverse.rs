//! From a model's tensors back to those of its checkpoint.
//!
//! What a load did is read backwards. Where there was no load, keys and shapes are proposed that the rules would make
//! the model's tensors of; the rules are then applied to these, as in a load, and what they do is read backwards. So
//! nothing is written that would not load again.

mod error;
mod propose;
mod shapes;

pub use self::error::RestoreError;

use std::collections::{BTreeMap, BTreeSet};

use self::propose::propose;
use super::assembly::{Assembly, count};
use super::memory::{LoadedLayout, Remembered, Repeated};
use super::problem::{ConversionProblem, with_shapes};
use super::resolve::{Resolution, Tensor, Wanted, resolve};
use super::rules::RuleSet;
use crate::weights::keys::PrefixChange;
use crate::weights::report::{ConvertedKey, RenamedKey, quoted};

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
    for Repeated { key, shape, target } in known.loaded.iter().flat_map(|loaded| &loaded.repeated) {
        let part = by_key.get(target.as_str()).copied();
        let part = part.filter(|&at| tensors.get(at).is_some_and(|tensor| tensor.shape == shape));
        if let Some(part) = part.filter(|_| !restored.written.iter().any(|written| written.key == *key)) {
            restored.written.push(Written { key: key.clone(), parts: vec![part], assembly: None });
        }
    }
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
