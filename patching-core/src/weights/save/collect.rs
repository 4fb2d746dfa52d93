//! A model's parameters as tensors of a checkpoint, read one at a time.

use std::ops::Range;

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::kind::Basic;
use burn::tensor::{Bool, BoolStore, DType, FloatDType, Int, Tensor, TensorData};
use safetensors::tensor::Dtype;

use crate::weights::convert::converted;
use crate::weights::error::SaveError;
use crate::weights::layout::LayoutRules;
use crate::weights::options::float_dtype;
use crate::weights::parameters::{Layout, Place};
use crate::weights::reader::{METADATA_KEY, to_file};

/// One tensor to be saved. It holds the parameter's value, which shares its memory with the model.
pub(super) struct Saved {
    pub(super) key: String,
    pub(super) path: String,
    /// The path without variants of enums and what replacements add.
    pub(super) name: String,
    pub(super) dtype: Dtype,
    /// As in the file.
    pub(super) shape: Vec<usize>,
    pub(super) bytes: u64,
    /// Whether its elements are floats.
    pub(super) float: bool,
    read: Read,
}

/// Reads the elements of a box of the tensor, as it is in a file; all of them without one.
type Read = Box<dyn Fn(Option<&[Range<usize>]>) -> Result<TensorData, SaveError>>;

impl Saved {
    /// The elements in the order and the type of the file.
    pub(super) fn read(&self) -> Result<TensorData, SaveError> {
        (self.read)(None)
    }

    /// The elements within `ranges`, one for each dimension in the file. No others leave the device.
    pub(super) fn read_box(&self, ranges: &[Range<usize>]) -> Result<TensorData, SaveError> {
        (self.read)(Some(ranges))
    }
}

/// Every parameter of `module`, in the order of its fields.
pub(super) fn collect<M: Module>(
    module: &M,
    rules: &LayoutRules,
    dtype: Option<FloatDType>,
) -> Result<Vec<Saved>, SaveError> {
    let mut collect = Collect { rules, dtype, place: Place::default(), found: Ok(Vec::new()) };
    module.visit(&mut collect);
    collect.found
}

struct Collect<'a> {
    rules: &'a LayoutRules,
    dtype: Option<FloatDType>,
    place: Place,
    found: Result<Vec<Saved>, SaveError>,
}

impl Collect<'_> {
    fn found<const D: usize, K: Basic + 'static>(&mut self, tensor: Tensor<D, K>) {
        match self.tensor(tensor) {
            Ok(tensor) => {
                if let Ok(tensors) = &mut self.found {
                    tensors.push(tensor);
                }
            }
            Err(error) => {
                if self.found.is_ok() {
                    self.found = Err(error);
                }
            }
        }
    }

    fn tensor<const D: usize, K: Basic + 'static>(&self, tensor: Tensor<D, K>) -> Result<Saved, SaveError> {
        let path = self.place.path();
        if self.place.in_adapter() {
            return Err(SaveError::Adapter { path });
        }
        let Layout { name, key, operations } = self.place.layout(self.rules);
        if key == METADATA_KEY {
            return Err(SaveError::ReservedKey { key });
        }
        let stored = match tensor.dtype() {
            DType::Flex32 => DType::F32,
            DType::Bool(_) => DType::Bool(BoolStore::Native),
            float if float.is_float() => float_dtype(float, self.dtype),
            other => other,
        };
        let unsupported = || SaveError::UnsupportedDtype { path: path.clone(), dtype: stored };
        let dtype = to_file(stored).ok_or_else(unsupported)?;

        let in_model = tensor.shape().as_slice().to_vec();
        let shape = operations.iter().rev().try_fold(in_model.clone(), |shape, step| step.source_shape(&shape));
        let shape = shape.ok_or_else(|| SaveError::InvalidLayout { path: path.clone(), shape: in_model })?;
        let bytes = (shape.iter().product::<usize>() * stored.size()) as u64;

        let (tensor_key, place) = (key.clone(), path.clone());
        let read = move |ranges: Option<&[Range<usize>]>| {
            let tensor = operations.iter().rev().fold(tensor.clone(), |tensor, operation| operation.apply(tensor));
            let tensor = match ranges {
                Some(ranges) if ranges.len() == D => tensor.slice(ranges),
                // A tensor without dimensions has one element.
                _ => tensor,
            };
            let data = tensor.try_into_data();
            let unread = |reason| SaveError::Tensor { path: place.clone(), reason };
            let data = data.map_err(|error| unread(error.to_string()))?;
            let from = data.dtype();
            let failed = |reason| SaveError::Convert { key: tensor_key.clone(), from, to: stored, reason };
            converted(data, stored).map_err(failed)
        };
        Ok(Saved { key, path, name, dtype, shape, bytes, float: stored.is_float(), read: Box::new(read) })
    }
}

// The value itself is saved, not what the parameter's own save mapper makes of it: that one serves Burn's records and
// may lay it out differently.
impl ModuleVisitor for Collect<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.place.enter(name, container);
    }

    fn exit_module(&mut self, _name: &str, container: &str) {
        self.place.exit(container);
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.found(param.base());
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.found(param.base());
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.found(param.base());
    }
}
