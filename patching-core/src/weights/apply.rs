//! Putting a checkpoint's tensors into a model, as planned.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

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
    checkpoint: &Checkpoint,
    progress: Option<&ProgressCallback>,
) -> Result<M, LoadError> {
    let total_bytes = plan.targets.values().map(|target| target.bytes).sum();
    let mut applier = Applier {
        plan,
        checkpoint,
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
    checkpoint: &'a Checkpoint,
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
                let meter = &mut self.meter;
                let told = catch_unwind(AssertUnwindSafe(|| meter.finished(&target.key, target.bytes)));
                self.panicked = told.err();
                Some(tensor)
            }
            Err(error) => {
                self.failed = Some(error);
                None
            }
        }
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

impl ModuleMapper for Applier<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.place.enter(name, container);
    }

    fn exit_module(&mut self, _name: &str, container: &str) {
        self.place.exit(container);
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
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
