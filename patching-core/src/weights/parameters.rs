//! The parameters of a model, walked in order, with their keys in a checkpoint.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Bool, Device, Int, Tensor};

use super::layout::{LayoutRules, Operation};
use crate::class::{field_name, is_variant};

/// What a parameter's elements are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParameterKind {
    /// Floating-point numbers.
    Float,
    /// Integers.
    Int,
    /// Truth values.
    Bool,
}

/// One parameter of a model, as a checkpoint sees it.
#[derive(Debug, Clone)]
pub(crate) struct Parameter {
    /// Its path in the model.
    pub(crate) path: String,
    /// That path without variants of enums and what replacements add.
    pub(crate) name: String,
    /// Its key in a checkpoint.
    pub(crate) key: String,
    pub(crate) kind: ParameterKind,
    /// Its shape in the model.
    pub(crate) shape: Vec<usize>,
    /// Its shape in a checkpoint.
    pub(crate) file_shape: Vec<usize>,
    /// The steps from the checkpoint's tensor to the parameter.
    pub(crate) operations: Vec<Operation>,
    pub(crate) device: Device,
    /// Whether Burn transposes what is loaded into it once more: `Linear` with `LinearLayout::Col` does.
    pub(crate) transposes_on_load: bool,
}

/// A layout rule that does not suit the shape of the parameter at this path.
pub(crate) struct Unsuitable {
    pub(crate) path: String,
    pub(crate) shape: Vec<usize>,
}

/// The parameters of `module` in the order of its fields. No parameter is initialised by this.
pub(crate) fn parameters<M: Module>(module: &M, rules: &LayoutRules) -> Result<Vec<Parameter>, Unsuitable> {
    let mut walk = Walk { rules, place: Place::default(), found: Ok(Vec::new()) };
    module.visit(&mut walk);
    walk.found
}

/// Where a walk over a model is. Visitors and mappers both keep one.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// Name and container of each step from the model on.
    steps: Vec<(String, String)>,
    adapters: usize,
}

/// The container that Burn names for the parts of a LoRA or another adapter.
const ADAPTER: &str = "Reparameterization";

impl Place {
    pub(crate) fn enter(&mut self, name: &str, container: &str) {
        self.steps.push((field_name(name, container).to_owned(), container.to_owned()));
        self.adapters += usize::from(container == ADAPTER);
    }

    pub(crate) fn exit(&mut self, container: &str) {
        self.steps.pop();
        self.adapters = self.adapters.saturating_sub(usize::from(container == ADAPTER));
    }

    /// Whether what is here belongs to an adapter on a parameter, which is no part of a checkpoint.
    pub(crate) fn in_adapter(&self) -> bool {
        self.adapters > 0
    }

    /// The path from the model to here.
    pub(crate) fn path(&self) -> String {
        let names: Vec<_> = self.steps.iter().map(|(name, _)| name.as_str()).collect();
        names.join(".")
    }

    /// The numbers of the steps that a checkpoint tells: no variants of enums, which are a choice between layers, and
    /// no fields in which replacements keep their original.
    fn told(&self, rules: &LayoutRules) -> Vec<usize> {
        let mut place = String::new();
        let mut told = Vec::with_capacity(self.steps.len());
        for (at, (name, container)) in self.steps.iter().enumerate() {
            if is_variant(container) {
                continue;
            }
            if rules.has_transparent() {
                if !place.is_empty() {
                    place.push('.');
                }
                place.push_str(name);
                if rules.is_transparent(&place) {
                    continue;
                }
            }
            told.push(at);
        }
        told
    }

    /// The key in a checkpoint and the steps from there to the parameter here.
    pub(crate) fn layout(&self, rules: &LayoutRules) -> Layout {
        let told = self.told(rules);
        let names = || told.iter().filter_map(|&at| Some((at, self.steps.get(at)?.0.as_str())));
        let name = names().map(|(_, name)| name).collect::<Vec<_>>().join(".");
        // A parameter in a list is laid out as the field that holds the list.
        let owner = self.steps.iter().rposition(|(_, container)| container.starts_with("Struct:"));
        let layout = owner.and_then(|at| {
            let (field, container) = self.steps.get(at)?;
            let layer = container.split_once(':').map_or("", |(_, layer)| layer);
            rules.find(&name, layer, field)
        });
        let key = match layout.and_then(|layout| layout.name()) {
            Some(renamed) => {
                let names = names().map(|(at, name)| if Some(at) == owner { renamed } else { name });
                names.collect::<Vec<_>>().join(".")
            }
            None => name.clone(),
        };
        Layout { name, key, operations: layout.map_or_else(Vec::new, |layout| layout.operations().to_vec()) }
    }
}

/// How a checkpoint sees a parameter.
pub(crate) struct Layout {
    /// Its path as the model's author knows it: without variants of enums and what replacements add.
    pub(crate) name: String,
    /// Its key in a checkpoint.
    pub(crate) key: String,
    /// The steps from there to the parameter.
    pub(crate) operations: Vec<Operation>,
}

/// Whether a value for this parameter has to be transposed first, because Burn will transpose it.
///
/// Burn keeps that in a closure of the parameter, so it takes a probe to find out.
fn transposes_on_load<const D: usize>(param: &Param<Tensor<D>>) -> bool {
    if D != 2 {
        return false;
    }
    let mut shape = [1; D];
    shape[D - 1] = 2;
    let probe = Tensor::<D>::zeros(shape, &param.lazy_device());
    param.clone().transform_for_load(probe, param.id).lazy_shape().as_slice() == [2, 1]
}

struct Walk<'a> {
    rules: &'a LayoutRules,
    place: Place,
    found: Result<Vec<Parameter>, Unsuitable>,
}

impl Walk<'_> {
    fn found(&mut self, kind: ParameterKind, shape: Vec<usize>, device: Device) {
        if self.place.in_adapter() {
            return;
        }
        let Ok(parameters) = &mut self.found else {
            return;
        };
        let path = self.place.path();
        let Layout { name, key, operations } = self.place.layout(self.rules);
        let file_shape = operations.iter().rev().try_fold(shape.clone(), |shape, step| step.source_shape(&shape));
        match file_shape {
            Some(file_shape) => {
                parameters.push(Parameter {
                    path,
                    name,
                    key,
                    kind,
                    shape,
                    file_shape,
                    operations,
                    device,
                    transposes_on_load: false,
                });
            }
            None => self.found = Err(Unsuitable { path, shape }),
        }
    }
}

impl ModuleVisitor for Walk<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.place.enter(name, container);
    }

    fn exit_module(&mut self, _name: &str, container: &str) {
        self.place.exit(container);
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if self.place.in_adapter() {
            return;
        }
        let mut shape = param.lazy_shape().as_slice().to_vec();
        let transposes = transposes_on_load(param);
        if transposes && !param.is_initialized() {
            // Until it is initialised, such a parameter tells the shape from before it is transposed.
            shape.reverse();
        }
        self.found(ParameterKind::Float, shape, param.lazy_device());
        if transposes
            && let Ok(parameters) = &mut self.found
            && let Some(parameter) = parameters.last_mut()
        {
            parameter.transposes_on_load = true;
        }
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.found(ParameterKind::Int, param.lazy_shape().as_slice().to_vec(), param.lazy_device());
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.found(ParameterKind::Bool, param.lazy_shape().as_slice().to_vec(), param.lazy_device());
    }
}
