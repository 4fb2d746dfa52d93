//! Which tensors of a checkpoint make which parameter, decided before any of them is read.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use burn::tensor::{DType, FloatDType};

use super::conversion::{
    Assembly, Direct, LoadedLayout, Recipe, Remembered, Repeated, RuleSet, Tensor, Wanted, resolve,
};
use super::error::LoadError;
use super::keys::{PrefixChange, near};
use super::layout::Operation;
use super::options::{LoadOptions, float_dtype};
use super::parameters::{Parameter, ParameterKind};
use super::reader::Checkpoint;
use super::report::{CastKey, CastReason, ConvertedKey, LoadReport, MismatchedKey, MissingKey, RenamedKey};
use super::tie::{imply, resolve_ties, tie_sources};

/// Missing keys that near matches are looked for; for all of those of a large model it would take long.
const COMPARED: usize = 20;

/// Which tensors make which parameter, and what will be left over.
#[derive(Debug)]
pub(crate) struct LoadPlan {
    /// By the parameter's path in the model.
    pub(crate) targets: HashMap<String, Target>,
    /// How what the targets take is made.
    pub(crate) recipes: Vec<Recipe>,
    /// What the model remembers of it.
    pub(crate) layout: Arc<LoadedLayout>,
    pub(crate) report: LoadReport,
}

/// How one parameter is made.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) key: String,
    /// The number of the recipe that makes it.
    pub(crate) recipe: usize,
    /// The steps from there to the parameter.
    pub(crate) operations: Vec<Operation>,
    /// The element type that the parameter gets.
    pub(crate) dtype: DType,
    /// The bytes of what the recipe makes.
    pub(crate) bytes: u64,
    /// Whether another parameter takes the same.
    pub(crate) shared: bool,
}

/// What a model says about its own weights.
pub(crate) struct ModelFacts<'a> {
    pub(crate) parameters: &'a [Parameter],
    /// Pairs of a tied parameter and its source.
    pub(crate) ties: Vec<(String, String)>,
    /// Pairs of the key of a tensor without a parameter and of the one whose parameter it shares.
    pub(crate) implied_ties: Vec<(String, String)>,
    pub(crate) base_model_prefix: &'a str,
    pub(crate) rules: &'a RuleSet,
    /// Where its base models are.
    pub(crate) bases: Vec<String>,
}

impl LoadPlan {
    /// Maps every parameter to its sources.
    ///
    /// What is missing or does not fit is in the report; whether that is an error is for the caller to say.
    pub(crate) fn new(
        model: &ModelFacts<'_>,
        checkpoint: &Checkpoint,
        options: &LoadOptions,
    ) -> Result<Self, LoadError> {
        let by_key = by_key(model.parameters)?;
        let ties = resolve_ties(&model.ties, model.parameters, &by_key)?;
        let change = PrefixChange::new(model.base_model_prefix);

        let stored: Vec<_> = checkpoint
            .tensors()
            .map(|(key, stored)| Tensor { key, shape: stored.shape(), dtype: stored.dtype_name() })
            .collect();
        let wanted: Wanted<'_> =
            by_key.iter().map(|(key, parameter)| (*key, parameter.file_shape.as_slice())).collect();
        let resolution = resolve(model.rules, &change, &stored, &wanted);
        let unexpected = resolution.unexpected.iter().filter_map(|&at| stored.get(at)).map(|tensor| tensor.key);
        let mut unexpected: Vec<&str> = unexpected.collect();

        let mut report = LoadReport {
            mismatched: resolution.mismatched,
            problems: resolution.problems,
            unused_rules: resolution.unused,
            ..LoadReport::default()
        };
        // A file with the prefix on every key, and nothing else, is this model's own, as some are published: it is saved
        // so again. One with more than that is a head's.
        let is_own = unexpected.is_empty() && change.is_on_all(stored.iter().map(|tensor| tensor.key));
        let is_prefixed = is_own && !change.is_on_any(wanted.keys().copied());
        let mut recipes = Vec::new();
        let mut sources = BTreeMap::<&str, usize>::new();
        let mut layout = LoadedLayout { bases: model.bases.clone(), ..LoadedLayout::default() };
        for Direct { tensor, target, renamed, own_key } in &resolution.direct {
            let (Some(tensor), Some((&known, _))) = (stored.get(*tensor), by_key.get_key_value(target.as_str())) else {
                continue;
            };
            sources.insert(known, recipes.len());
            recipes.push(Recipe::plain(tensor.key, checkpoint)?);
            if tensor.key != known {
                report.renamed.push(RenamedKey { from: tensor.key.to_owned(), to: known.to_owned() });
            }
            if *renamed || is_prefixed {
                let key = if is_prefixed { tensor.key.to_owned() } else { own_key.clone() };
                layout.made.push(Remembered {
                    sources: vec![(key, tensor.shape.to_vec())],
                    targets: vec![(known.to_owned(), Assembly::whole(0, tensor.shape.to_vec()))],
                    operations: Vec::new(),
                });
            } else {
                layout.direct.insert(known.to_owned());
            }
        }
        for made in resolution.made.into_iter().filter(|made| !made.targets.is_empty()) {
            let tensors: Vec<_> = made.tensors.iter().filter_map(|&at| stored.get(at)).collect();
            let keys: Vec<_> = tensors.iter().map(|tensor| tensor.key.to_owned()).collect();
            let first = tensors.first().and_then(|tensor| checkpoint.get(tensor.key));
            for (target, assembly) in &made.targets {
                let (Some((&known, _)), Some(first)) = (by_key.get_key_value(target.as_str()), first) else {
                    continue;
                };
                sources.insert(known, recipes.len());
                recipes.push(Recipe {
                    sources: keys.clone(),
                    shape: assembly.shape.clone(),
                    assembly: Some(assembly.clone()),
                    dtype_name: first.dtype_name(),
                    dtype: first.dtype(),
                });
            }
            let in_file = keys.clone();
            report.converted.push(ConvertedKey {
                sources: keys,
                targets: made.targets.iter().map(|(key, _)| key.clone()).collect(),
                operations: made.operations.clone(),
            });
            if made.complete {
                let shapes = tensors.iter().map(|tensor| tensor.shape.to_vec());
                let own_keys = if is_prefixed { in_file } else { made.own_keys };
                layout.made.push(Remembered {
                    sources: own_keys.into_iter().zip(shapes).collect(),
                    targets: made.targets,
                    operations: made.operations,
                });
            }
        }

        for (key, source) in &model.implied_ties {
            let at = unexpected.iter().position(|found| found == key);
            if let (Some(at), Some((source, _))) = (at, by_key.get_key_value(source.as_str())) {
                let own = unexpected.remove(at);
                let shape = checkpoint.get(own).map_or_else(Vec::new, |stored| stored.shape().to_vec());
                let serves = !sources.contains_key(source);
                report.tied.push(imply(own, source, &mut sources, &mut recipes, checkpoint)?);
                if serves {
                    layout.made.push(Remembered {
                        sources: vec![(own.to_owned(), shape.clone())],
                        targets: vec![((*source).to_owned(), Assembly::whole(0, shape))],
                        operations: Vec::new(),
                    });
                } else {
                    layout.repeated.push(Repeated { key: own.to_owned(), shape, target: (*source).to_owned() });
                }
            }
        }
        tie_sources(&ties, &mut sources, &recipes, checkpoint, &mut report)?;

        let mut targets = HashMap::with_capacity(model.parameters.len());
        let mut used = BTreeSet::new();
        for parameter in model.parameters {
            let key = parameter.key.as_str();
            let source = sources.get(key).and_then(|&at| Some((at, recipes.get(at)?)));
            let Some((source, recipe)) = source else {
                if resolution.failed.contains(key) {
                    continue;
                }
                let compare = report.missing.len() < COMPARED;
                let near = if compare { near(key, &unexpected) } else { Vec::new() };
                report.missing.push(MissingKey {
                    key: parameter.key.clone(),
                    shape: parameter.file_shape.clone(),
                    near,
                    taken_for: taken_for(key, &sources, &recipes, checkpoint),
                });
                continue;
            };
            match fit(parameter, recipe, options.dtype) {
                Ok((operations, dtype, cast)) => {
                    report.casts.extend(cast);
                    report.loaded += 1;
                    let bytes = recipe.bytes(checkpoint);
                    if used.insert(source) {
                        report.bytes += bytes;
                    }
                    let key = parameter.key.clone();
                    let target = Target { key, recipe: source, operations, dtype, bytes, shared: false };
                    targets.insert(parameter.path.clone(), target);
                }
                Err(mismatch) => report.mismatched.push(mismatch),
            }
        }
        share(&mut targets);
        report.unexpected = unexpected.into_iter().map(str::to_owned).collect();
        Ok(Self { targets, recipes, report, layout: Arc::new(layout) })
    }
}

/// The parameters by their keys.
fn by_key(parameters: &[Parameter]) -> Result<BTreeMap<&str, &Parameter>, LoadError> {
    let mut by_key = BTreeMap::<&str, &Parameter>::new();
    for parameter in parameters {
        if let Some(first) = by_key.insert(&parameter.key, parameter) {
            return Err(LoadError::DuplicateParameter {
                key: parameter.key.clone(),
                first: first.path.clone(),
                second: parameter.path.clone(),
            });
        }
    }
    Ok(by_key)
}

/// The parameters that are made of the tensor `key`, if the checkpoint has one.
fn taken_for(key: &str, sources: &BTreeMap<&str, usize>, recipes: &[Recipe], checkpoint: &Checkpoint) -> Vec<String> {
    if checkpoint.get(key).is_none() {
        return Vec::new();
    }
    let is_made_of =
        |at: &usize| recipes.get(*at).is_some_and(|recipe| recipe.sources.iter().any(|source| source == key));
    sources.iter().filter(|(_, at)| is_made_of(at)).map(|(&target, _)| target.to_owned()).collect()
}

/// Whether a stored tensor fits a parameter: the steps, the element type it gets, and the conversion to report.
fn fit(
    parameter: &Parameter,
    stored: &Recipe,
    wanted: Option<FloatDType>,
) -> Result<(Vec<Operation>, DType, Option<CastKey>), MismatchedKey> {
    let mismatch = |dtype| MismatchedKey {
        key: parameter.key.clone(),
        file_shape: stored.shape.clone(),
        model_shape: parameter.file_shape.clone(),
        dtype,
        sources: Vec::new(),
    };
    let mut operations = parameter.operations.clone();
    if stored.shape != parameter.file_shape {
        // A number on its own has no dimension in a file and one in Burn.
        if stored.shape.is_empty() && parameter.shape == [1] {
            operations = vec![Operation::Scalar];
        } else {
            return Err(mismatch(None));
        }
    }
    let unfit = || mismatch(Some(stored.dtype_name.clone()));
    if parameter.transposes_on_load {
        operations.push(Operation::Transpose { dim0: 0, dim1: 1 });
    }
    let from = stored.dtype.ok_or_else(unfit)?;
    let settings = parameter.device.settings();
    let (to, reason) = match parameter.kind {
        ParameterKind::Float if from.is_float() => {
            let to = float_dtype(from, wanted);
            if parameter.device.supports_dtype(to) {
                (to, CastReason::Requested)
            } else {
                (DType::F32, CastReason::Unsupported)
            }
        }
        ParameterKind::Int if from.is_int() || from.is_uint() => (settings.int_dtype.into(), CastReason::DeviceDefault),
        ParameterKind::Bool if from.is_bool() => (from, CastReason::DeviceDefault),
        _ => return Err(unfit()),
    };
    let cast = (from != to).then(|| CastKey { key: parameter.key.clone(), from, to, reason });
    Ok((operations, to, cast))
}

/// Marks the targets whose sources another target takes too.
fn share(targets: &mut HashMap<String, Target>) {
    let mut counts = HashMap::<usize, usize>::new();
    for target in targets.values() {
        *counts.entry(target.recipe).or_default() += 1;
    }
    for target in targets.values_mut() {
        target.shared = counts.get(&target.recipe).is_some_and(|&count| count > 1);
    }
}
