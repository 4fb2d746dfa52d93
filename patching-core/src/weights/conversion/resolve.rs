//! Which tensors of a checkpoint go into which parameters, by the rules.

mod group;

use std::collections::{BTreeMap, BTreeSet};

use self::group::{Group, build};
use super::assembly::Assembly;
use super::problem::ConversionProblem;
use super::rules::{Bound, GroupName, RuleSet, Side, index};
use crate::weights::keys::{PrefixChange, near};
use crate::weights::report::MismatchedKey;

/// A tensor of a checkpoint, there or to be.
#[derive(Debug, Clone)]
pub(crate) struct Tensor<'a> {
    pub(crate) key: &'a str,
    pub(crate) shape: &'a [usize],
    /// The name of its element type.
    pub(crate) dtype: String,
}

/// The parameters of a model: their keys, and their shapes as in a checkpoint.
pub(crate) type Wanted<'a> = BTreeMap<&'a str, &'a [usize]>;

/// A parameter that is one tensor as it is.
#[derive(Debug, Clone)]
pub(crate) struct Direct {
    pub(crate) tensor: usize,
    pub(crate) target: String,
    /// Whether rules gave it another name.
    pub(crate) renamed: bool,
    /// The key that it has in a checkpoint of this very model, without a change of prefix.
    pub(crate) own_key: String,
}

/// Parameters that are made of tensors together.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    pub(crate) tensors: Vec<usize>,
    /// The keys that the tensors have in a checkpoint of this very model, without a change of prefix.
    pub(crate) own_keys: Vec<String>,
    pub(crate) targets: Vec<(String, Assembly)>,
    pub(crate) operations: Vec<String>,
    /// Whether all targets fit.
    pub(crate) complete: bool,
}

/// What goes where.
#[derive(Debug, Default)]
pub(crate) struct Resolution {
    pub(crate) direct: Vec<Direct>,
    pub(crate) made: Vec<Made>,
    pub(crate) unexpected: Vec<usize>,
    pub(crate) mismatched: Vec<MismatchedKey>,
    pub(crate) problems: Vec<ConversionProblem>,
    /// Parameters that the problems and mismatches are about.
    pub(crate) failed: BTreeSet<String>,
    /// Rules that were asked for and did nothing.
    pub(crate) unused: Vec<String>,
}

/// The parameter of a key: its own key, and whether a prefix had to be changed.
struct Locate<'a> {
    wanted: &'a Wanted<'a>,
    change: &'a PrefixChange,
}

impl<'a> Locate<'a> {
    fn find(&self, key: &str) -> Option<(&'a str, bool)> {
        if let Some((known, _)) = self.wanted.get_key_value(key) {
            return Some((known, false));
        }
        let changed = self.change.candidates(key).into_iter();
        changed.filter_map(|key| self.wanted.get_key_value(key.as_str())).map(|(known, _)| (*known, true)).next()
    }
}

/// What came of one rule.
#[derive(Debug, Clone, Copy, Default)]
struct Use {
    matched: bool,
    used: bool,
}

/// Applies `rules` to `tensors`, in their order.
pub(crate) fn resolve(
    rules: &RuleSet,
    change: &PrefixChange,
    tensors: &[Tensor<'_>],
    wanted: &Wanted<'_>,
) -> Resolution {
    let bound = rules.bind(tensors.iter().map(|tensor| tensor.key));
    let locate = Locate { wanted, change };
    let mut resolution = Resolution::default();
    let mut uses = vec![Use::default(); bound.len()];
    let mut groups = BTreeMap::<GroupName, Group>::new();
    let mut by_prefix = Vec::new();

    for (number, tensor) in tensors.iter().enumerate() {
        let (name, by) = renamed(&bound, tensor.key, &mut uses);
        // The first rule that takes the key and makes a parameter of it. Others that would take it have to do with the
        // checkpoint all the same: the same rule may be registered for a class and for its model type.
        let mut member = None;
        for (at, rule) in bound.iter().enumerate() {
            let Some((source, found)) = rule.member(&name, Side::Sources) else { continue };
            mark(&mut uses, at, |found| found.matched = true);
            if member.is_some() {
                continue;
            }
            let group = GroupName::new(at, &found);
            let makes_something = groups.contains_key(&group)
                || (0..rule.converter().map_or(0, |converter| converter.targets.len()))
                    .any(|target| locate.find(&group.key(rule, Side::Targets, target, 0)).is_some());
            member = makes_something.then_some((at, source, found, group));
        }
        if let Some((at, source, member, group)) = member {
            let place = match member.index {
                None => Some(0),
                Some(segment) => index(segment),
            };
            let itself = || locate.find(&name).or_else(|| locate.find(tensor.key)).is_some();
            match place {
                Some(place) => {
                    for rule in by.iter().chain([&at]) {
                        mark(&mut uses, *rule, |found| found.used = true);
                    }
                    groups.entry(group).or_default().add(source, place, number, name != tensor.key);
                    continue;
                }
                None if itself() => {}
                None => {
                    let segment = member.index.unwrap_or_default().to_owned();
                    let key = tensor.key.to_owned();
                    resolution.problems.push(ConversionProblem::NotAnIndex { key, segment });
                    continue;
                }
            }
        }
        let found = locate.find(&name).map(|found| (found, name != tensor.key));
        let found = found.or_else(|| locate.find(tensor.key).map(|found| (found, false)));
        let Some(((target, prefix), renamed)) = found else {
            resolution.unexpected.push(number);
            continue;
        };
        let own_key = if prefix { own_key(tensor.key, &name, target) } else { tensor.key.to_owned() };
        let direct = Direct { tensor: number, target: target.to_owned(), renamed, own_key };
        if renamed {
            for rule in &by {
                mark(&mut uses, *rule, |found| found.used = true);
            }
        }
        // A key that is there as it is always wins over one whose prefix has to be changed.
        if prefix && !renamed { by_prefix.push(direct) } else { resolution.direct.push(direct) }
    }

    for (name, group) in &groups {
        if let Some(rule) = bound.get(name.rule) {
            build(name, group, rule, &bound, &locate, tensors, &mut resolution);
        }
    }
    settle(&mut resolution, by_prefix, tensors);
    check_use(&bound, &uses, tensors, &mut resolution);
    resolution
}

fn mark(uses: &mut [Use], rule: usize, change: impl FnOnce(&mut Use)) {
    if let Some(found) = uses.get_mut(rule) {
        change(found);
    }
}

/// `key` after all renamings that apply to it, and their numbers.
fn renamed(bound: &[Bound<'_>], key: &str, uses: &mut [Use]) -> (String, Vec<usize>) {
    let mut name = key.to_owned();
    let mut by = Vec::new();
    for (number, rule) in bound.iter().enumerate() {
        let changed = rule.renaming().and_then(|renaming| renaming.apply(rule.inner(&name)?));
        // one that an earlier renaming came before has to do with the key all the same
        let takes = || rule.renaming().and_then(|renaming| renaming.apply(rule.inner(key)?)).is_some();
        if changed.is_some() || takes() {
            mark(uses, number, |found| found.matched = true);
        }
        if let Some(changed) = changed {
            name = rule.outer(&changed);
            by.push(number);
        }
    }
    (name, by)
}

/// The key that a tensor `key` has in a checkpoint of this very model, where `name` became `target` by a prefix.
fn own_key(key: &str, name: &str, target: &str) -> String {
    if let Some(prefix) = target.strip_suffix(name) {
        return format!("{prefix}{key}");
    }
    let prefix = name.strip_suffix(target).unwrap_or_default();
    key.strip_prefix(prefix).unwrap_or(key).to_owned()
}

/// Finds parameters that several tensors claim, and gives those that none does to tensors with another prefix.
fn settle(resolution: &mut Resolution, by_prefix: Vec<Direct>, tensors: &[Tensor<'_>]) {
    let key = |tensor: &usize| tensors.get(*tensor).map(|tensor| tensor.key.to_owned());
    let mut claims = BTreeMap::<&str, Vec<Vec<String>>>::new();
    for direct in &resolution.direct {
        claims.entry(&direct.target).or_default().push(key(&direct.tensor).into_iter().collect());
    }
    for made in &resolution.made {
        for (target, _) in &made.targets {
            claims.entry(target).or_default().push(made.tensors.iter().filter_map(key).collect());
        }
    }
    let taken: BTreeSet<String> = claims.keys().map(|&target| target.to_owned()).collect();
    let twice: Vec<_> = claims.into_iter().filter(|(_, claims)| claims.len() > 1).collect();
    let twice: Vec<_> = twice.into_iter().map(|(target, sources)| (target.to_owned(), sources)).collect();
    for (target, sources) in twice {
        resolution.failed.insert(target.clone());
        resolution.problems.push(ConversionProblem::Collision { target, sources });
    }
    let mut given = BTreeSet::new();
    for direct in by_prefix {
        let failed = resolution.failed.contains(&direct.target);
        if taken.contains(&direct.target) || failed || !given.insert(direct.target.clone()) {
            resolution.unexpected.push(direct.tensor);
        } else {
            resolution.direct.push(direct);
        }
    }
    resolution.unexpected.sort_unstable();
}

/// Tells of rules that were asked for but did nothing; those that nothing in the checkpoint has to do with are wrong.
fn check_use(bound: &[Bound<'_>], uses: &[Use], tensors: &[Tensor<'_>], resolution: &mut Resolution) {
    for (rule, found) in bound.iter().zip(uses).filter(|(rule, found)| rule.asked_for && !found.used) {
        let made = |key: &str| match rule.renaming() {
            Some(renaming) => rule.inner(key).is_some_and(|inner| renaming.may_have_made(inner)),
            None => rule.member(key, Side::Targets).is_some(),
        };
        let text = rule.rule.transform.to_string();
        if found.matched || rule.rule.optional || tensors.iter().any(|tensor| made(tensor.key)) {
            resolution.unused.push(text);
        } else {
            let near = alike(rule, tensors);
            resolution.problems.push(ConversionProblem::Unmatched { rule: text, near });
        }
    }
}

/// Parts of keys that look like the patterns of a rule.
fn alike(rule: &Bound<'_>, tensors: &[Tensor<'_>]) -> Vec<String> {
    let mut found = Vec::new();
    for pattern in rule.rule.sources_of_names() {
        let mut runs = BTreeSet::new();
        for tensor in tensors.iter().take(2_000) {
            let segments: Vec<_> =
                tensor.key.split('.').map(|segment| index(segment).map_or(segment, |_| "*")).collect();
            runs.extend(segments.windows(pattern.len()).map(|run| run.join(".")));
        }
        let runs: Vec<_> = runs.iter().map(String::as_str).collect();
        found.extend(near(pattern.text(), &runs));
    }
    found.sort();
    found.dedup();
    found
}
