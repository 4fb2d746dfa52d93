//! Which tensors of a checkpoint make which parameter, decided before any of them is read.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use burn::tensor::{DType, FloatDType};

use super::error::{LoadError, ReadError};
use super::keys::{PrefixChange, near};
use super::layout::Operation;
use super::options::{LoadOptions, float_dtype};
use super::parameters::{Parameter, ParameterKind};
use super::reader::{Checkpoint, StoredTensor};
use super::report::{CastKey, CastReason, LoadReport, MismatchedKey, MissingKey, RenamedKey, TiedKey};

/// Missing keys that near matches are looked for; for all of those of a large model it would take long.
const COMPARED: usize = 20;

/// Which tensors make which parameter, and what will be left over.
#[derive(Debug)]
pub(crate) struct LoadPlan {
    /// By the parameter's path in the model.
    pub(crate) targets: HashMap<String, Target>,
    pub(crate) report: LoadReport,
}

/// How one parameter is made.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) key: String,
    /// Keys of the checkpoint. Operations that join several come with conversions.
    pub(crate) sources: Vec<String>,
    /// The steps from the sources to the parameter.
    pub(crate) operations: Vec<Operation>,
    /// The element type that the parameter gets.
    pub(crate) dtype: DType,
    /// The bytes of the sources.
    pub(crate) bytes: u64,
    /// Whether another parameter takes the same sources.
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

        let mut report = LoadReport::default();
        let mut sources = BTreeMap::<&str, &str>::new();
        let mut unexpected = Vec::new();
        let mut changed = Vec::new();
        for (key, _) in checkpoint.tensors() {
            match by_key.get_key_value(key) {
                Some((known, _)) => {
                    sources.insert(known, key);
                }
                None => changed.push(key),
            }
        }
        // Only now, so that a key that is there as it is always wins over one that has to be changed.
        for key in changed {
            let target = change.candidates(key).into_iter().find_map(|changed| by_key.get_key_value(changed.as_str()));
            match target {
                Some((known, _)) if !sources.contains_key(known) => {
                    sources.insert(known, key);
                    report.renamed.push(RenamedKey { from: key.to_owned(), to: (*known).to_owned() });
                }
                _ => unexpected.push(key),
            }
        }

        for (key, source) in &model.implied_ties {
            let at = unexpected.iter().position(|found| found == key);
            if let (Some(at), Some((source, _))) = (at, by_key.get_key_value(source.as_str())) {
                let own = unexpected.remove(at);
                report.tied.push(imply(own, source, &mut sources, checkpoint)?);
            }
        }
        tie(&ties, &mut sources, checkpoint, &mut report)?;

        let mut targets = HashMap::with_capacity(model.parameters.len());
        let mut used = BTreeSet::new();
        for parameter in model.parameters {
            let Some(&source) = sources.get(parameter.key.as_str()) else {
                let compare = report.missing.len() < COMPARED;
                let near = if compare { near(&parameter.key, &unexpected) } else { Vec::new() };
                report.missing.push(MissingKey {
                    key: parameter.key.clone(),
                    shape: parameter.file_shape.clone(),
                    near,
                });
                continue;
            };
            let stored = checkpoint.get(source).ok_or_else(|| ReadError::NoTensor { key: source.to_owned() })?;
            match fit(parameter, stored, options.dtype) {
                Ok((operations, dtype, cast)) => {
                    report.casts.extend(cast);
                    report.loaded += 1;
                    if used.insert(source) {
                        report.bytes += stored.len();
                    }
                    let target = Target {
                        key: parameter.key.clone(),
                        sources: vec![source.to_owned()],
                        operations,
                        dtype,
                        bytes: stored.len(),
                        shared: false,
                    };
                    targets.insert(parameter.path.clone(), target);
                }
                Err(mismatch) => report.mismatched.push(mismatch),
            }
        }
        share(&mut targets);
        report.unexpected = unexpected.into_iter().map(str::to_owned).collect();
        Ok(Self { targets, report })
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
        let by_path = || parameters.iter().find(|parameter| parameter.path == name);
        by_key.get(name).copied().or_else(by_path)
    };
    let mut resolved = Vec::with_capacity(ties.len());
    for pair in ties {
        let absent = |name: &str| {
            let keys: Vec<_> = by_key.keys().copied().collect();
            let near = super::report::quoted(&near(name, &keys));
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
fn tie<'a>(
    ties: &[(&'a Parameter, &'a Parameter)],
    sources: &mut BTreeMap<&'a str, &'a str>,
    checkpoint: &'a Checkpoint,
    report: &mut LoadReport,
) -> Result<(), LoadError> {
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
                Some(own) if !checkpoint.are_equal(own, shared)? => report.untied.push(tied),
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
fn imply<'a>(
    own: &'a str,
    main: &'a str,
    sources: &mut BTreeMap<&'a str, &'a str>,
    checkpoint: &Checkpoint,
) -> Result<TiedKey, LoadError> {
    match sources.get(main) {
        Some(shared) if !checkpoint.are_equal(own, shared)? => {
            Err(LoadError::Untied { key: own.to_owned(), source_key: (*shared).to_owned() })
        }
        Some(_) => Ok(TiedKey { key: own.to_owned(), source: main.to_owned() }),
        None => {
            sources.insert(main, own);
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

/// Whether a stored tensor fits a parameter: the steps, the element type it gets, and the conversion to report.
fn fit(
    parameter: &Parameter,
    stored: &StoredTensor,
    wanted: Option<FloatDType>,
) -> Result<(Vec<Operation>, DType, Option<CastKey>), MismatchedKey> {
    let mismatch = |dtype| MismatchedKey {
        key: parameter.key.clone(),
        file_shape: stored.shape().to_vec(),
        model_shape: parameter.file_shape.clone(),
        dtype,
    };
    let mut operations = parameter.operations.clone();
    if stored.shape() != parameter.file_shape {
        // A number on its own has no dimension in a file and one in Burn.
        if stored.shape().is_empty() && parameter.shape == [1] {
            operations = vec![Operation::Scalar];
        } else {
            return Err(mismatch(None));
        }
    }
    let unfit = || mismatch(Some(stored.dtype_name()));
    if parameter.transposes_on_load {
        operations.push(Operation::Transpose { dim0: 0, dim1: 1 });
    }
    let from = stored.dtype().ok_or_else(unfit)?;
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
    let mut counts = HashMap::<Vec<String>, usize>::new();
    for target in targets.values() {
        *counts.entry(target.sources.clone()).or_default() += 1;
    }
    for target in targets.values_mut() {
        target.shared = counts.get(&target.sources).is_some_and(|&count| count > 1);
    }
}
