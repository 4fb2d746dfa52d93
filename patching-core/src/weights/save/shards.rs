//! Which tensor goes into which file, and how a file is written.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use safetensors::tensor::{Metadata, TensorInfo};
use serde_json::{Map, Value, json};

use super::output::Output;
use crate::weights::error::SaveError;
use crate::weights::options::Meter;
use crate::weights::reader::WEIGHTS_NAME;

/// A file's name and the tensors in it.
pub(super) struct Shard<'a> {
    pub(super) name: String,
    pub(super) tensors: Vec<&'a Output<'a>>,
}

/// Divides `tensors`, in their order, into files of at most `limit` bytes of tensors; a larger tensor gets a file of
/// its own. The same division as the reference's.
pub(super) fn divide<'a>(tensors: &'a [Output<'a>], limit: u64) -> Vec<Shard<'a>> {
    let mut parts = Vec::new();
    let (mut part, mut size) = (Vec::new(), 0_u64);
    for tensor in tensors {
        if tensor.bytes > limit {
            parts.push(vec![tensor]);
            continue;
        }
        if size.saturating_add(tensor.bytes) > limit {
            parts.push(std::mem::take(&mut part));
            size = 0;
        }
        part.push(tensor);
        size += tensor.bytes;
    }
    if !part.is_empty() || parts.is_empty() {
        parts.push(part);
    }
    let count = parts.len();
    let name = |number: usize| match count {
        1 => WEIGHTS_NAME.to_owned(),
        _ => format!("model-{number:05}-of-{count:05}.safetensors"),
    };
    parts.into_iter().enumerate().map(|(at, tensors)| Shard { name: name(at + 1), tensors }).collect()
}

/// Whether `name` is that of a shard, in its final or in a passing form.
pub(super) fn is_shard(name: &str) -> bool {
    let numbers = name.strip_prefix("model-").and_then(|rest| rest.strip_suffix(".safetensors"));
    let Some((first, rest)) = numbers.and_then(|numbers| numbers.split_once("-of-")) else {
        return false;
    };
    let count = rest.split_once('.').map_or(rest, |(count, _)| count);
    [first, count].iter().all(|number| number.len() == 5 && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The content of `model.safetensors.index.json`.
pub(super) fn index(shards: &[Shard<'_>]) -> Value {
    let tensors = || shards.iter().flat_map(|shard| &shard.tensors);
    let parameters: usize = tensors().map(|tensor| tensor.shape.iter().product::<usize>()).sum();
    let size: u64 = tensors().map(|tensor| tensor.bytes).sum();
    let weight_map: Map<_, _> = shards
        .iter()
        .flat_map(|shard| shard.tensors.iter().map(|tensor| (tensor.key.clone(), json!(shard.name))))
        .collect();
    json!({ "metadata": { "total_parameters": parameters, "total_size": size }, "weight_map": weight_map })
}

/// Writes a file, tensor by tensor, and waits until it is on the disk.
pub(super) fn write(shard: &Shard<'_>, path: &Path, meter: &mut Meter<'_>) -> Result<(), SaveError> {
    // Wide elements first, so that all are aligned; then by name.
    let mut tensors = shard.tensors.clone();
    tensors.sort_by(|one, other| other.dtype.cmp(&one.dtype).then_with(|| one.key.cmp(&other.key)));

    let header = header(shard, &tensors)?;
    let file = File::create_new(path).map_err(SaveError::io(path, "create"))?;
    let mut writer = BufWriter::with_capacity(1 << 20, &file);
    let mut put = |bytes: &[u8]| writer.write_all(bytes).map_err(SaveError::io(path, "write"));
    put(&(header.len() as u64).to_le_bytes())?;
    put(&header)?;
    for tensor in tensors {
        let bytes = tensor.read()?;
        if bytes.len() as u64 != tensor.bytes {
            let reason = format!("it has {} bytes, expected {}", bytes.len(), tensor.bytes);
            return Err(SaveError::Tensor { path: tensor.key.clone(), reason });
        }
        put(&bytes)?;
        meter.finished(&tensor.key, tensor.bytes);
    }
    writer.flush().map_err(SaveError::io(path, "write"))?;
    drop(writer);
    file.sync_all().map_err(SaveError::io(path, "write"))
}

/// The header's JSON, filled with spaces to a multiple of eight bytes.
fn header(shard: &Shard<'_>, tensors: &[&Output<'_>]) -> Result<Vec<u8>, SaveError> {
    let failed = |reason: String| SaveError::Header { file: shard.name.clone(), reason };
    let mut end = 0;
    let infos = tensors.iter().map(|tensor| {
        let start = end;
        end += tensor.bytes as usize;
        let info = TensorInfo { dtype: tensor.dtype, shape: tensor.shape.clone(), data_offsets: (start, end) };
        (tensor.key.clone(), info)
    });
    let format = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    let metadata = Metadata::new(Some(format), infos.collect()).map_err(|error| failed(error.to_string()))?;
    let mut header = serde_json::to_vec(&metadata).map_err(|error| failed(error.to_string()))?;
    header.resize(header.len().next_multiple_of(8), b' ');
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::is_shard;

    #[test]
    fn shards_are_known_by_their_names() {
        assert!(is_shard("model-00001-of-00003.safetensors"));
        assert!(is_shard("model-00001-of-00003.1f2e.safetensors"));
        for name in [
            "model.safetensors",
            "model-1-of-3.safetensors",
            "model-00001-of-00003.bin",
            "model-0000x-of-00003.safetensors",
            "xmodel-00001-of-00003.safetensors",
            "model-00001-of-00003-extra.safetensors",
        ] {
            assert!(!is_shard(name), "{name}");
        }
    }
}
