use crate::cli::error::CliError;
use burn::tensor::TensorData;
use burnlens::burn_models::auto::NamedInputs;
use half::{bf16, f16};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use std::fs;
use std::io::{self, Read};
use std::path::Path;

/// The tensors of a safetensors file.
pub(super) fn read(path: &Path) -> Result<NamedInputs, CliError> {
    let bytes = contents(path).map_err(|source| CliError::File { action: "read", path: path.to_owned(), source })?;
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

/// The bytes of a regular file, as many as it says it has: a pipe or a device might never end.
fn contents(path: &Path) -> io::Result<Vec<u8>> {
    // Before it is opened, for which a pipe would wait.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    let file = fs::File::open(path)?;
    let size = file.metadata()?.len();
    let mut bytes = Vec::new();
    let reserved = usize::try_from(size).ok().and_then(|size| bytes.try_reserve_exact(size).ok());
    if reserved.is_none() {
        let problem = format!("its {size} bytes are more than there is memory");
        return Err(io::Error::new(io::ErrorKind::OutOfMemory, problem));
    }
    file.take(size).read_to_end(&mut bytes)?;
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
