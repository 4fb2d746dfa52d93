//! The tensors that a converter takes together, and what it makes of them.

use std::collections::BTreeMap;

use super::{Locate, Made, Resolution, Tensor, own_key};
use crate::weights::conversion::assembly::Assembly;
use crate::weights::conversion::problem::ConversionProblem;
use crate::weights::conversion::rules::{Bound, GroupName, Side};
use crate::weights::conversion::steps::{Expectations, StepError, Stream, run};
use crate::weights::keys::near;
use crate::weights::report::MismatchedKey;

/// Keys that are collected for a message.
const LISTED: usize = 8;

/// The tensors of each source pattern by their index in the module list, or at 0.
#[derive(Debug, Default)]
pub(super) struct Group {
    sources: BTreeMap<usize, BTreeMap<usize, usize>>,
    /// Pairs of tensors for one place.
    twice: Vec<(usize, usize)>,
    renamed: bool,
}

impl Group {
    pub(super) fn add(&mut self, source: usize, place: usize, tensor: usize, renamed: bool) {
        self.renamed |= renamed;
        if let Some(other) = self.sources.entry(source).or_default().insert(place, tensor) {
            self.twice.push((other, tensor));
        }
    }
}

/// A target's parameters, as the rule names them and as the model does.
struct Target<'a> {
    named: String,
    items: Vec<&'a str>,
}

#[allow(clippy::too_many_arguments, reason = "one call, which has all of it at hand")]
pub(super) fn build(
    name: &GroupName,
    group: &Group,
    rule: &Bound<'_>,
    bound: &[Bound<'_>],
    locate: &Locate<'_>,
    tensors: &[Tensor<'_>],
    resolution: &mut Resolution,
) {
    let Some(converter) = rule.converter() else {
        return;
    };
    let targets = match targets(name, rule, locate, converter.splits, converter.targets.len()) {
        Ok(targets) => targets,
        Err(problem) => {
            for target in 0..converter.targets.len() {
                let found = locate.find(&name.key(rule, Side::Targets, target, 0));
                resolution.failed.extend(found.map(|(key, _)| key.to_owned()));
            }
            resolution.problems.push(problem);
            return;
        }
    };
    let keys: Vec<String> = targets.iter().flat_map(|target| &target.items).map(|&key| key.to_owned()).collect();
    let fail = |resolution: &mut Resolution, problem: ConversionProblem| {
        resolution.failed.extend(keys.iter().cloned());
        resolution.problems.push(problem);
    };

    let shapes: Vec<_> = targets.iter().map(|target| locate.wanted.get(target.items.first()?).copied()).collect();
    let expected = Expectations::new(&converter.operations, converter.sources.len(), &shapes);
    let found = group.sources.values().map(BTreeMap::len).sum();
    let length = match converter.merges {
        false => 1,
        true => expected.merged.unwrap_or_else(|| group.sources.values().map(BTreeMap::len).max().unwrap_or_default()),
    };

    let mut wrong = Vec::new();
    for (one, other) in &group.twice {
        let key = |tensor: &usize| tensors.get(*tensor).map(|tensor| tensor.key.to_owned()).into_iter().collect();
        let target = keys.first().cloned().unwrap_or_default();
        wrong.push(ConversionProblem::Collision { target, sources: vec![key(one), key(other)] });
    }
    let missing = || {
        (0..converter.sources.len()).flat_map(|source| {
            let there = group.sources.get(&source);
            (0..length)
                .filter(move |index| there.is_none_or(|there| !there.contains_key(index)))
                .map(move |index| (source, index))
        })
    };
    let count = missing().count();
    if count > 0 {
        let original = |(source, index)| {
            let key = name.key(rule, Side::Sources, source, index);
            if group.renamed { undone(bound, &key) } else { key }
        };
        let missing: Vec<_> = missing().take(LISTED).map(original).collect();
        let known: Vec<_> =
            resolution.unexpected.iter().filter_map(|&at| tensors.get(at)).map(|tensor| tensor.key).collect();
        let near = missing.first().map(|key| near(key, &known)).unwrap_or_default();
        wrong.push(ConversionProblem::MissingSources { targets: keys.clone(), missing, count, found, near });
    }
    let surplus: Vec<_> = group.sources.values().flat_map(|items| items.range(length..)).collect();
    if !surplus.is_empty() {
        let named = surplus.iter().take(LISTED).filter_map(|(_, tensor)| tensors.get(**tensor));
        let named = named.map(|tensor| tensor.key.to_owned()).collect();
        let (targets, count) = (keys.clone(), surplus.len());
        wrong.push(ConversionProblem::TooMany { targets, surplus: named, count, expected: length });
    }
    let members: Vec<usize> = group.sources.values().flat_map(|items| items.values().copied()).collect();
    let stored: Vec<&Tensor<'_>> = members.iter().filter_map(|&member| tensors.get(member)).collect();
    let mut dtypes = BTreeMap::new();
    for tensor in &stored {
        dtypes.entry(tensor.dtype.as_str()).or_insert(tensor.key);
    }
    if dtypes.len() > 1 {
        let sources = dtypes.iter().map(|(dtype, key)| ((*key).to_owned(), (*dtype).to_owned())).collect();
        wrong.push(ConversionProblem::Dtypes { targets: keys.clone(), sources });
    }
    if !wrong.is_empty() {
        for problem in wrong {
            fail(resolution, problem);
        }
        return;
    }

    let with_shapes = || stored.iter().map(|tensor| (tensor.key.to_owned(), tensor.shape.to_vec())).collect::<Vec<_>>();
    let list = targets.first().map_or(0, |target| target.items.len());
    let carry_out = |start: &dyn Fn(usize, &[usize]) -> Assembly| {
        let mut number = 0;
        let streams: Vec<Stream> = group
            .sources
            .values()
            .map(|items| {
                let of = |tensor: &usize| {
                    let shape = tensors.get(*tensor).map_or(&[][..], |tensor| tensor.shape);
                    number += 1;
                    start(number - 1, shape)
                };
                items.values().map(of).collect()
            })
            .collect();
        run(&converter.operations, streams, &expected, converter.targets.len(), list, &rule.head_dim)
    };
    // First the shapes alone: what does not fit must not cost more than to find that out.
    let outlines = match carry_out(&|_, shape| Assembly::outline(shape.to_vec())) {
        Ok(outlines) => outlines,
        Err(error) => {
            let (targets, sources) = (keys.clone(), with_shapes());
            let problem = match error {
                StepError::Operation { operation, reason } => {
                    ConversionProblem::Operation { targets, sources, operation, reason }
                }
                StepError::Ambiguous { dim0, dim1, shape } => {
                    ConversionProblem::AmbiguousTranspose { targets, sources, shape, dim0, dim1 }
                }
            };
            return fail(resolution, problem);
        }
    };
    let mut complete = true;
    for (target, stream) in targets.iter().zip(&outlines) {
        for (key, outline) in target.items.iter().zip(stream) {
            let wanted = locate.wanted.get(key).copied().unwrap_or_default();
            if outline.shape != wanted {
                complete = false;
                resolution.failed.insert((*key).to_owned());
                resolution.mismatched.push(MismatchedKey {
                    key: (*key).to_owned(),
                    file_shape: outline.shape.clone(),
                    model_shape: wanted.to_vec(),
                    dtype: None,
                    sources: with_shapes(),
                });
            }
        }
    }
    let Ok(made) = carry_out(&|number, shape| Assembly::whole(number, shape.to_vec())) else {
        return;
    };
    let fitting = targets
        .iter()
        .zip(made)
        .flat_map(|(target, stream)| target.items.iter().map(|&key| key.to_owned()).zip(stream).collect::<Vec<_>>());
    let fitting: Vec<_> = fitting.filter(|(key, _)| !resolution.failed.contains(key)).collect();
    let changed = targets.first().and_then(|target| Some((target.named.as_str(), *target.items.first()?)));
    let own_keys = stored.iter().map(|tensor| match changed {
        Some((named, target)) if named != target => own_key(tensor.key, named, target),
        _ => tensor.key.to_owned(),
    });
    resolution.made.push(Made {
        own_keys: own_keys.collect(),
        tensors: members,
        targets: fitting,
        operations: converter.operations.iter().map(ToString::to_string).collect(),
        complete,
    });
}

/// The parameters that the targets of a group name; all of them must be there.
fn targets<'a>(
    name: &GroupName,
    rule: &Bound<'_>,
    locate: &Locate<'a>,
    listed: bool,
    count: usize,
) -> Result<Vec<Target<'a>>, ConversionProblem> {
    let find = |target, index| locate.find(&name.key(rule, Side::Targets, target, index)).map(|(key, _)| key);
    let lists: Vec<Vec<&str>> = (0..count)
        .map(|target| match listed {
            true => (0..).map_while(|index| find(target, index)).collect(),
            false => find(target, 0).into_iter().collect(),
        })
        .collect();
    let longest = lists.iter().map(Vec::len).max().unwrap_or_default();
    lists
        .into_iter()
        .enumerate()
        .map(|(target, items)| {
            if items.len() < longest {
                let known: Vec<_> = locate.wanted.keys().copied().collect();
                let key = name.key(rule, Side::Targets, target, items.len());
                let near = near(&key, &known);
                return Err(ConversionProblem::UnknownTarget {
                    rule: rule.rule.transform.to_string(),
                    target: key,
                    near,
                });
            }
            Ok(Target { named: name.key(rule, Side::Targets, target, 0), items })
        })
        .collect()
}

/// `key` as it was before the renamings, as far as that can be told.
fn undone(bound: &[Bound<'_>], key: &str) -> String {
    bound.iter().rev().fold(key.to_owned(), |key, rule| {
        let before = rule.renaming().and_then(|renaming| renaming.undo(rule.inner(&key)?).ok().flatten());
        before.map_or(key, |before| rule.outer(&before))
    })
}
