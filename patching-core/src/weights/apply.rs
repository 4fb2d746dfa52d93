//! Putting a checkpoint's tensors into a model, as planned.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::kind::Basic;
use burn::tensor::{Bool, Device, Int, Tensor, TensorData};

use super::convert::convert;
use super::error::LoadError;
use super::layout::Operation;
use super::options::{Meter, ProgressCallback};
use super::parameters::Place;
use super::plan::{LoadPlan, Target};
use super::reader::Checkpoint;

/// Carries out `plan` on `module`.
pub(crate) fn apply<M: Module>(
    module: M,
    plan: &LoadPlan,
    checkpoint: &Arc<Checkpoint>,
    defer: bool,
    progress: Option<&ProgressCallback>,
) -> Result<M, LoadError> {
    let total_bytes = plan.targets.values().map(|target| target.bytes).sum();
    let mut applier = Applier {
        plan,
        checkpoint,
        defer,
        place: Place::default(),
        shared: HashMap::new(),
        meter: Meter::new(progress, plan.targets.len(), total_bytes),
        failed: None,
        panicked: None,
    };
    let module = module.map(&mut applier);
    if let Some(panic) = applier.panicked {
        resume_unwind(panic);
    }
    match applier.failed {
        Some(error) => Err(error),
        None => Ok(module),
    }
}

struct Applier<'a> {
    plan: &'a LoadPlan,
    checkpoint: &'a Arc<Checkpoint>,
    /// Whether parameters that have to be put together may be so when they are first used.
    defer: bool,
    place: Place,
    /// Tensors that several parameters take, as in the file.
    shared: HashMap<usize, Box<dyn Any>>,
    meter: Meter<'a>,
    failed: Option<LoadError>,
    /// A panic of the caller's callback: inside a mapper it would abort the process.
    panicked: Option<Box<dyn Any + Send>>,
}

impl<'a> Applier<'a> {
    /// The value for the parameter here, if there is to be one.
    fn value<const D: usize, K: Basic + 'static>(&mut self, device: impl FnOnce() -> Device) -> Option<Tensor<D, K>> {
        if self.failed.is_some() || self.panicked.is_some() || self.place.in_adapter() {
            return None;
        }
        let plan = self.plan;
        let target = plan.targets.get(&self.place.path())?;
        match self.make(target, &device()) {
            Ok(tensor) => {
                self.tell(target);
                Some(tensor)
            }
            Err(error) => {
                self.failed = Some(error);
                None
            }
        }
    }

    fn tell(&mut self, target: &Target) {
        let meter = &mut self.meter;
        self.panicked = catch_unwind(AssertUnwindSafe(|| meter.finished(&target.key, target.bytes))).err();
    }

    /// `param` as one that is put together when it is first used, as the pages of a map are read then.
    ///
    /// Not where the value would have to be changed in ways that may fail, or where Burn keeps more with the parameter
    /// than can be seen from outside.
    fn deferred<const D: usize>(&mut self, param: &Param<Tensor<D>>) -> Option<Param<Tensor<D>>> {
        if !self.defer || self.failed.is_some() || self.panicked.is_some() || self.place.in_adapter() {
            return None;
        }
        let target = self.plan.targets.get(&self.place.path())?;
        let recipe = self.plan.recipes.get(target.recipe)?;
        let device = param.lazy_device();
        let simple = recipe.is_joined() && recipe.dtype == Some(target.dtype) && !target.shared;
        if !simple || param.is_initialized() || device.is_autodiff() || !is_plain(param) {
            return None;
        }
        let (recipe, checkpoint) = (recipe.clone(), Arc::clone(self.checkpoint));
        let Target { key, operations, dtype, .. } = target.clone();
        let make = move |device: &Device, require_grad: bool| {
            let data = match recipe.read(&checkpoint) {
                Ok(data) => data,
                // as touching a page of a map that cannot be read would end the program
                Err(error) => panic!("`{key}` can no longer be read: {error}"),
            };
            let tensor = Tensor::<D>::from_data(data, (device, dtype));
            operations.iter().fold(tensor, |tensor, operation| operation.apply(tensor)).set_require_grad(require_grad)
        };
        self.tell(target);
        Some(Param::uninitialized(param.id, make, device, true, param.lazy_shape()))
    }

    fn make<const D: usize, K: Basic + 'static>(
        &mut self,
        target: &'a Target,
        device: &Device,
    ) -> Result<Tensor<D, K>, LoadError> {
        // With autodiff each parameter has to be a leaf of its own.
        let share = target.shared && !device.is_autodiff();
        let known = self.shared.get(&target.recipe).filter(|_| share);
        let tensor = match known.and_then(|tensor| tensor.downcast_ref::<Tensor<D, K>>()) {
            Some(tensor) => tensor.clone(),
            None => {
                let data = self.read(target)?;
                let tensor = Tensor::from_data(data, (device, target.dtype));
                if share {
                    self.shared.insert(target.recipe, Box::new(tensor.clone()));
                }
                tensor
            }
        };
        Ok(target.operations.iter().fold(tensor, |tensor, operation| operation.apply(tensor)))
    }

    fn read(&self, target: &Target) -> Result<TensorData, LoadError> {
        let Some(recipe) = self.plan.recipes.get(target.recipe) else {
            return Err(super::error::ReadError::NoTensor { key: target.key.clone() }.into());
        };
        let source = if recipe.assembly.is_some() { target.key.as_str() } else { recipe.name() };
        let data = convert(recipe.read(self.checkpoint)?, source, target.dtype)?;
        if target.operations.contains(&Operation::Scalar) {
            let (bytes, _, dtype) = data.into_parts();
            return TensorData::try_from_bytes(bytes, [1], dtype).map_err(|error| LoadError::Convert {
                key: source.to_owned(),
                from: dtype,
                to: dtype,
                reason: error.to_string(),
            });
        }
        Ok(data)
    }
}

/// Whether a parameter that is not made yet is one as any: no mapper changes what is loaded or saved, and it is trained.
///
/// Burn keeps both to itself. Mappers are told by its debug output.
fn is_plain<const D: usize>(param: &Param<Tensor<D>>) -> bool {
    format!("{param:?}").ends_with("load: false, save: false }") && is_trained(param)
}

/// Told by a copy with another value, which is trained.
#[cfg(feature = "autodiff")]
fn is_trained<const D: usize>(param: &Param<Tensor<D>>) -> bool {
    let value = Tensor::<D>::zeros([1; D], &param.lazy_device());
    let copy = param.clone().transform_for_load(value, param.id);
    Module::train(copy).val().is_require_grad()
}

/// In a program without autodiff it does not matter.
#[cfg(not(feature = "autodiff"))]
fn is_trained<const D: usize>(_: &Param<Tensor<D>>) -> bool {
    true
}

impl ModuleMapper for Applier<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.place.enter(name, container);
    }

    fn exit_module(&mut self, _name: &str, container: &str) {
        self.place.exit(container);
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if let Some(deferred) = self.deferred(&param) {
            return deferred;
        }
        match self.value(|| param.lazy_device()) {
            Some(tensor) => {
                let id = param.id;
                param.transform_for_load(tensor, id)
            }
            None => param,
        }
    }

    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        match self.value(|| param.lazy_device()) {
            Some(tensor) => {
                let id = param.id;
                param.transform_for_load(tensor, id)
            }
            None => param,
        }
    }

    fn map_bool<const D: usize>(&mut self, param: Param<Tensor<D, Bool>>) -> Param<Tensor<D, Bool>> {
        match self.value(|| param.lazy_device()) {
            Some(tensor) => {
                let id = param.id;
                param.transform_for_load(tensor, id)
            }
            None => param,
        }
    }
}
