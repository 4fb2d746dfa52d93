use crate::cli::error::CliError;
use burn::tensor::TensorData;
use burnlens::burn_models::auto::NamedInputs;
use half::{bf16, f16};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use std::path::Path;

/// The tensors of a safetensors file.
pub(super) fn read(path: &Path) -> Result<NamedInputs, CliError> {
    let bytes =
        std::fs::read(path).map_err(|source| CliError::File { action: "read", path: path.to_owned(), source })?;
    let file =
        SafeTensors::deserialize(&bytes).map_err(|source| CliError::Safetensors { path: path.to_owned(), source })?;
    let mut inputs = NamedInputs::new();
    for (name, view) in file.iter() {
        let data = data(&view).ok_or_else(|| CliError::InputDtype {
            path: path.to_owned(),
            name: name.to_owned(),
            found: view.dtype(),
        })?;
        inputs = inputs.with(name, data);
    }
    if inputs.names().next().is_none() {
        return Err(CliError::NoInputs { path: path.to_owned() });
    }
    Ok(inputs)
}

/// Elements of `N` bytes each, little endian as the format has it.
fn elements<const N: usize, T>(view: &TensorView<'_>, read: impl Fn([u8; N]) -> T) -> Vec<T> {
    let (chunks, _) = view.data().as_chunks::<N>();
    chunks.iter().map(|chunk| read(*chunk)).collect()
}

/// The tensor, if it is of a type that an input may have.
fn data(view: &TensorView<'_>) -> Option<TensorData> {
    let shape = view.shape().to_vec();
    Some(match view.dtype() {
        Dtype::BOOL => TensorData::new(elements(view, |[byte]| byte != 0), shape),
        Dtype::U8 => TensorData::new(elements(view, u8::from_le_bytes), shape),
        Dtype::I8 => TensorData::new(elements(view, i8::from_le_bytes), shape),
        Dtype::U16 => TensorData::new(elements(view, u16::from_le_bytes), shape),
        Dtype::I16 => TensorData::new(elements(view, i16::from_le_bytes), shape),
        Dtype::U32 => TensorData::new(elements(view, u32::from_le_bytes), shape),
        Dtype::I32 => TensorData::new(elements(view, i32::from_le_bytes), shape),
        Dtype::U64 => TensorData::new(elements(view, u64::from_le_bytes), shape),
        Dtype::I64 => TensorData::new(elements(view, i64::from_le_bytes), shape),
        Dtype::F16 => TensorData::new(elements(view, |bytes| f16::from_le_bytes(bytes).to_f32()), shape),
        Dtype::BF16 => TensorData::new(elements(view, |bytes| bf16::from_le_bytes(bytes).to_f32()), shape),
        Dtype::F32 => TensorData::new(elements(view, f32::from_le_bytes), shape),
        Dtype::F64 => TensorData::new(elements(view, f64::from_le_bytes), shape),
        _ => return None,
    })
}
