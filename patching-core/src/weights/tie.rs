//! Tied parameters: which tensor they take when a model is loaded, and whose value when it is not.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::Tensor;

use super::conversion::{Recipe, are_equal};
use super::error::LoadError;
use super::keys::near;
use super::layout::{LayoutRules, Operation};
use super::parameters::{Parameter, Place, Unsuitable, parameters};
use super::reader::Checkpoint;
use super::report::{LoadReport, TiedKey, quoted};

/// The pairs of tied parameters as keys; they may be given as paths.
pub(crate) fn resolve_ties<'a>(
    ties: &[(String, String)],
    parameters: &'a [Parameter],
    by_key: &BTreeMap<&'a str, &'a Parameter>,
) -> Result<Vec<(&'a Parameter, &'a Parameter)>, LoadError> {
    let invalid = |(tied, source): &(String, String), reason: String| LoadError::InvalidTie {
        tied: tied.clone(),
        source_path: source.clone(),
        reason,
    };
    let find = |name: &str| {
        let by_path = || parameters.iter().find(|parameter| parameter.path == name || parameter.name == name);
        by_key.get(name).copied().or_else(by_path)
    };
    let mut resolved = Vec::with_capacity(ties.len());
    for pair in ties {
        let absent = |name: &str| {
            let keys: Vec<_> = by_key.keys().copied().collect();
            let near = quoted(&near(name, &keys));
            let near = if near.is_empty() { near } else { format!("; it has {near}") };
            invalid(pair, format!("the model has no parameter `{name}`{near}"))
        };
        let tied = find(&pair.0).ok_or_else(|| absent(&pair.0))?;
        let source = find(&pair.1).ok_or_else(|| absent(&pair.1))?;
        if tied.kind != source.kind || tied.file_shape != source.file_shape {
            let shapes = format!("their shapes are {:?} and {:?}", tied.file_shape, source.file_shape);
            return Err(invalid(pair, shapes));
        }
        resolved.push((tied, source));
    }
    Ok(resolved)
}

/// Gives tied parameters without a tensor of their own that of another of their group.
///
/// As the reference does: whichever of them the checkpoint has is taken for all; where it has several, they are tied
/// if they are equal and left alone if they are not.
pub(crate) fn tie_sources<'a>(
    ties: &[(&'a Parameter, &'a Parameter)],
    sources: &mut BTreeMap<&'a str, usize>,
    recipes: &[Recipe],
    checkpoint: &Checkpoint,
    report: &mut LoadReport,
) -> Result<(), LoadError> {
    let equal = |one: usize, other: usize| match (recipes.get(one), recipes.get(other)) {
        (Some(one), Some(other)) => are_equal(one, other, checkpoint),
        _ => Ok(false),
    };
    for group in groups(ties) {
        let Some(&main) = group.iter().find(|key| sources.contains_key(**key)) else {
            continue;
        };
        let Some(&shared) = sources.get(main) else {
            continue;
        };
        for &key in group.iter().filter(|key| **key != main) {
            let tied = TiedKey { key: key.to_owned(), source: main.to_owned() };
            match sources.get(key) {
                Some(&own) if !equal(own, shared)? => report.untied.push(tied),
                _ => {
                    sources.insert(key, shared);
                    report.tied.push(tied);
                }
            }
        }
    }
    Ok(())
}

/// Makes the tensor `own`, which has no parameter, serve for the parameter `main` if that has none, and checks that it
/// could otherwise.
pub(crate) fn imply<'a>(
    own: &str,
    main: &'a str,
    sources: &mut BTreeMap<&'a str, usize>,
    recipes: &mut Vec<Recipe>,
    checkpoint: &Checkpoint,
) -> Result<TiedKey, LoadError> {
    let recipe = Recipe::plain(own, checkpoint)?;
    match sources.get(main).and_then(|&shared| recipes.get(shared)) {
        Some(shared) if !are_equal(&recipe, shared, checkpoint)? => {
            Err(LoadError::Untied { key: own.to_owned(), source_key: shared.name().to_owned() })
        }
        Some(_) => Ok(TiedKey { key: own.to_owned(), source: main.to_owned() }),
        None => {
            sources.insert(main, recipes.len());
            recipes.push(recipe);
            Ok(TiedKey { key: main.to_owned(), source: own.to_owned() })
        }
    }
}

/// Keys that are to have one value, the source of all of them first.
fn groups<'a>(ties: &[(&'a Parameter, &'a Parameter)]) -> Vec<Vec<&'a str>> {
    let mut groups = Vec::<Vec<&str>>::new();
    for (tied, source) in ties {
        let (tied, source) = (tied.key.as_str(), source.key.as_str());
        let at = groups.iter().position(|group| group.contains(&source));
        let of_tied = groups.iter().position(|group| group.contains(&tied));
        match (at, of_tied) {
            (Some(at), Some(other)) if at != other => {
                let moved = std::mem::take(&mut groups[other]);
                groups[at].extend(moved);
            }
            (Some(_), Some(_)) => {}
            (Some(at), None) => groups[at].push(tied),
            (None, Some(other)) => groups[other].insert(0, source),
            (None, None) if tied != source => groups.push(vec![source, tied]),
            (None, None) => {}
        }
    }
    groups.retain(|group| !group.is_empty());
    groups
}

/// Gives each tied float parameter the value of its source.
pub(crate) fn tie<M: Module>(module: M, ties: &[(String, String)], rules: &LayoutRules) -> Result<M, LoadError> {
    if ties.is_empty() {
        return Ok(module);
    }
    let parameters =
        parameters(&module, rules).map_err(|Unsuitable { path, shape }| LoadError::InvalidLayout { path, shape })?;
    let by_key: BTreeMap<_, _> = parameters.iter().map(|parameter| (parameter.key.as_str(), parameter)).collect();

    let mut sources = HashMap::new();
    let mut tied = HashMap::new();
    for (target, source) in resolve_ties(ties, &parameters, &by_key)? {
        sources.insert(source.path.as_str(), source.operations.as_slice());
        let mut operations = target.operations.clone();
        operations.extend(target.transposes_on_load.then_some(Operation::Transpose { dim0: 0, dim1: 1 }));
        tied.insert(target.path.as_str(), (source.path.as_str(), operations));
    }
    let mut collect = Collect { place: Place::default(), sources, values: HashMap::new() };
    module.visit(&mut collect);
    Ok(module.map(&mut Put { place: Place::default(), tied, values: collect.values }))
}

/// Values of sources, as in a file and without autodiff.
struct Collect<'a> {
    place: Place,
    sources: HashMap<&'a str, &'a [Operation]>,
    values: HashMap<String, Box<dyn Any>>,
}

struct Put<'a> {
    place: Place,
    tied: HashMap<&'a str, (&'a str, Vec<Operation>)>,
    values: HashMap<String, Box<dyn Any>>,
}

impl ModuleVisitor for Collect<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.place.enter(name, container);
    }

    fn exit_module(&mut self, _name: &str, container: &str) {
        self.place.exit(container);
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let path = self.place.path();
        if let Some(operations) = self.sources.get(path.as_str())
            && !self.place.in_adapter()
        {
            let value = param.base().without_autodiff();
            let value = operations.iter().rev().fold(value, |value, operation| operation.apply(value));
            self.values.insert(path, Box::new(value));
        }
    }
}

impl ModuleMapper for Put<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.place.enter(name, container);
    }

    fn exit_module(&mut self, _name: &str, container: &str) {
        self.place.exit(container);
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let path = self.place.path();
        let Some((source, operations)) = self.tied.get(path.as_str()).filter(|_| !self.place.in_adapter()) else {
            return param;
        };
        match self.values.get(*source).and_then(|value| value.downcast_ref::<Tensor<D>>()) {
            Some(value) => {
                let id = param.id;
                let value = operations.iter().fold(value.clone(), |value, operation| operation.apply(value));
                // A leaf of its own for each parameter.
                let value = if param.lazy_device().is_autodiff() { Tensor::from_inner(value) } else { value };
                param.transform_for_load(value, id)
            }
            None => param,
        }
    }
}
