//! Outputs as a safetensors file.

use super::record::Value;
use crate::cli::error::CliError;
use crate::cli::files::replace;
use burn::tensor::TensorData;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, serialize_to_file};
use std::collections::HashMap;
use std::path::Path;

/// A tensor in the form in which it is saved: floats as `F32`, integers as `I64`, truth values as they are.
pub(crate) struct Saved {
    name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Saved {
    pub(crate) fn of(value: &Value) -> Result<Self, CliError> {
        Self::new(value.name.clone(), value.shape().to_vec(), &value.data)
    }

    /// `data` under the name `name`, with `shape`, which has as many elements.
    pub(crate) fn new(name: String, shape: Vec<usize>, data: &TensorData) -> Result<Self, CliError> {
        let found = data.dtype();
        let (dtype, bytes) = if found.is_float() {
            (Dtype::F32, data.iter::<f32>().flat_map(f32::to_le_bytes).collect())
        } else if found.is_int() || found.is_uint() {
            (Dtype::I64, data.iter::<i64>().flat_map(i64::to_le_bytes).collect())
        } else if found.is_bool() {
            (Dtype::BOOL, data.iter::<bool>().map(u8::from).collect())
        } else {
            return Err(CliError::OutputDtype { name, found });
        };
        Ok(Self { name, dtype, shape, bytes })
    }

    /// Rows of integers of the same length.
    pub(crate) fn rows(name: &str, rows: &[Vec<i64>]) -> Self {
        let shape = vec![rows.len(), rows.first().map_or(0, Vec::len)];
        let bytes = rows.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
        Self { name: name.to_owned(), dtype: Dtype::I64, shape, bytes }
    }
}

/// Writes the tensors to `path`, whole or not at all.
pub(crate) fn write(path: &Path, tensors: &[Saved]) -> Result<(), CliError> {
    let views = tensors
        .iter()
        .map(|tensor| match TensorView::new(tensor.dtype, tensor.shape.clone(), &tensor.bytes) {
            Ok(view) => Ok((tensor.name.as_str(), view)),
            Err(source) => Err(CliError::SaveOutput { name: tensor.name.clone(), source }),
        })
        .collect::<Result<Vec<_>, _>>()?;
    let format = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    replace(path, |temporary| {
        serialize_to_file(views, Some(format), temporary)
            .map_err(|source| CliError::SaveOutputs { path: path.to_owned(), source })
    })
}
