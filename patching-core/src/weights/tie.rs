//! Tying parameters of a model that was not loaded.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::Tensor;

use super::error::LoadError;
use super::layout::{LayoutRules, Operation};
use super::parameters::{Place, Unsuitable, parameters};
use super::plan::resolve_ties;

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
