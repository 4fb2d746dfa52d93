use crate::cli::error::CliError;
use burn::tensor::TensorData;
use burnlens::burn_models::auto::NamedInputs;
use half::{bf16, f16};
use safetensors::tensor::{Metadata, TensorView};
use safetensors::{Dtype, SafeTensorError, SafeTensors};
use std::fs;
use std::io::{self, Read};
use std::path::Path;

/// The tensors of a safetensors file.
pub(super) fn read(path: &Path) -> Result<NamedInputs, CliError> {
    let bytes = contents(path)?;
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

/// The longest header that the format allows.
const MAX_HEADER: u64 = 100_000_000;

/// The bytes of a regular file: a pipe or a device might never end. Memory is taken once the header has said that the
/// file is as long as it should be.
fn contents(path: &Path) -> Result<Vec<u8>, CliError> {
    let failed = |source| CliError::File { action: "read", path: path.to_owned(), source };
    let invalid = |source| CliError::Safetensors { path: path.to_owned(), source };
    // Before it is opened, for which a pipe would wait.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")));
    }
    let mut file = fs::File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    let mut length = [0; 8];
    file.read_exact(&mut length).map_err(|_| invalid(SafeTensorError::HeaderTooSmall))?;
    let length_of_header = u64::from_le_bytes(length);
    if length_of_header > MAX_HEADER {
        return Err(invalid(SafeTensorError::HeaderTooLarge));
    }
    let mut bytes = length.to_vec();
    file.by_ref().take(length_of_header).read_to_end(&mut bytes).map_err(failed)?;
    let header: Metadata = serde_json::from_slice(bytes.get(length.len()..).unwrap_or_default())
        .map_err(|source| invalid(SafeTensorError::InvalidHeaderDeserialization(source)))?;
    let end = header.tensors().values().map(|tensor| tensor.data_offsets.1 as u64).max().unwrap_or(0);
    let rest = size.saturating_sub(bytes.len() as u64);
    if rest != end {
        return Err(invalid(SafeTensorError::MetadataIncompleteBuffer));
    }
    if usize::try_from(rest).ok().and_then(|rest| bytes.try_reserve_exact(rest).ok()).is_none() {
        let problem = format!("its {size} bytes are more than there is memory");
        return Err(failed(io::Error::new(io::ErrorKind::OutOfMemory, problem)));
    }
    file.take(rest).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
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
