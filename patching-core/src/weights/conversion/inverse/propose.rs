//! What the tensors of a model may have been made of.

use std::collections::BTreeMap;

use super::shapes::{Unknown, source_shapes};
use super::{Known, RestoreError};
use crate::weights::conversion::resolve::Tensor;
use crate::weights::conversion::rules::{Bound, GroupName, Side, index};

/// A tensor that a checkpoint might have.
pub(super) struct Proposed {
    pub(super) key: String,
    pub(super) shape: Vec<usize>,
    pub(super) dtype: String,
}

/// The tensors of the targets of a converter, by target and by index.
type Targets<'t> = BTreeMap<usize, BTreeMap<usize, &'t Tensor<'t>>>;

/// Keys and shapes that the rules may make `tensors` of.
pub(super) fn propose(tensors: &[&Tensor<'_>], known: &Known<'_>) -> Result<Vec<Proposed>, RestoreError> {
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
                Unknown::Operation(reason) => RestoreError::Operation { key, shape, rule, reason },
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
    for rule in bound.iter().rev().filter(|rule| !rule.rule.legacy) {
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
