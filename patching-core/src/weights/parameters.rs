//! The parameters of a model, walked in order, with their keys in a checkpoint.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Bool, Device, Int, Tensor};

use super::layout::{LayoutRules, Operation};

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
        self.steps.push((name.to_owned(), container.to_owned()));
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

    /// The place of the step `at`, as walks over slots tell it: variants of enums leave no trace.
    fn place_of(&self, at: usize) -> String {
        let steps = self.steps.iter().take(at + 1).filter(|(_, container)| !container.starts_with("Enum:"));
        steps.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(".")
    }

    /// The key in a checkpoint and the steps from there to the parameter here.
    pub(crate) fn layout(&self, rules: &LayoutRules) -> (String, Vec<Operation>) {
        // A parameter in a list is laid out as the field that holds the list.
        let owner = self.steps.iter().rposition(|(_, container)| container.starts_with("Struct:"));
        let layout = owner.and_then(|at| {
            let (name, container) = self.steps.get(at)?;
            let layer = container.split_once(':').map_or("", |(_, layer)| layer);
            rules.find(&self.path(), layer, name)
        });
        let renamed = layout.and_then(|layout| layout.name());
        let names: Vec<_> = self
            .steps
            .iter()
            .enumerate()
            // A variant of an enum is a choice between layers and leaves no trace in a checkpoint.
            .filter(|(_, (_, container))| !container.starts_with("Enum:"))
            .filter(|(at, _)| !rules.has_transparent() || !rules.is_transparent(&self.place_of(*at)))
            .map(|(at, (name, _))| match renamed {
                Some(renamed) if Some(at) == owner => renamed,
                _ => name.as_str(),
            })
            .collect();
        (names.join("."), layout.map_or_else(Vec::new, |layout| layout.operations().to_vec()))
    }
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
        let (key, operations) = self.place.layout(self.rules);
        let file_shape = operations.iter().rev().try_fold(shape.clone(), |shape, step| step.source_shape(&shape));
        match file_shape {
            Some(file_shape) => {
                parameters.push(Parameter {
                    path,
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
