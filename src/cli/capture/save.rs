//! Outputs as a safetensors file.

use super::record::Value;
use crate::cli::error::CliError;
use crate::cli::files::replace;
use burn::tensor::{DType, TensorData};
use safetensors::tensor::View;
use safetensors::{Dtype, serialize_to_file};
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

/// A tensor in the form in which it is saved: floats as `F32`, integers as `I64`, truth values as they are. Converted
/// when it is written, one tensor at a time.
pub(crate) struct Saved<'a> {
    name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    data: Cow<'a, TensorData>,
}

impl<'a> Saved<'a> {
    pub(crate) fn of(value: &'a Value) -> Result<Self, CliError> {
        // Burn has no tensors without dimensions. The reference has: a loss is one.
        let shape = match value.shape() {
            [1] if value.recorded.is_none() => Vec::new(),
            shape => shape.to_vec(),
        };
        Self::new(value.name.clone(), shape, Cow::Borrowed(&value.data))
    }

    /// `data` under the name `name`, with `shape`, which has as many elements.
    pub(crate) fn new(name: String, shape: Vec<usize>, data: Cow<'a, TensorData>) -> Result<Self, CliError> {
        let found = data.dtype();
        let dtype = if found.is_float() {
            Dtype::F32
        } else if found.is_int() || found.is_uint() {
            Dtype::I64
        } else if found.is_bool() {
            Dtype::BOOL
        } else {
            return Err(CliError::OutputDtype { name, found });
        };
        Ok(Self { name, dtype, shape, data })
    }

    /// Rows of integers of the same length.
    pub(crate) fn rows(name: &str, rows: &[Vec<i64>]) -> Self {
        let shape = vec![rows.len(), rows.first().map_or(0, Vec::len)];
        let data = Cow::Owned(TensorData::new(rows.concat(), shape.clone()));
        Self { name: name.to_owned(), dtype: Dtype::I64, shape, data }
    }
}

impl View for &Saved<'_> {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        match self.dtype {
            Dtype::F32 if self.data.dtype() == DType::F32 && cfg!(target_endian = "little") => {
                Cow::Borrowed(self.data.as_bytes())
            }
            Dtype::F32 => self.data.iter::<f32>().flat_map(f32::to_le_bytes).collect(),
            Dtype::I64 => self.data.iter::<i64>().flat_map(i64::to_le_bytes).collect(),
            _ => self.data.iter::<bool>().map(u8::from).collect(),
        }
    }

    fn data_len(&self) -> usize {
        self.shape.iter().product::<usize>() * self.dtype.bitsize() / 8
    }
}

/// Writes the tensors to `path`, whole or not at all.
pub(crate) fn write(path: &Path, tensors: &[Saved<'_>]) -> Result<(), CliError> {
    let views = tensors.iter().map(|tensor| (tensor.name.as_str(), tensor));
    let format = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    replace(path, |temporary| {
        serialize_to_file(views, Some(format), temporary)
            .map_err(|source| CliError::SaveOutputs { path: path.to_owned(), source })
    })
}
