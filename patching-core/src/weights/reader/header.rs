//! The header of a safetensors file.

use std::ops::Range;

use safetensors::tensor::{Dtype, TensorInfo};
use thiserror::Error;

use super::unique::TensorEntries;

/// Bytes before the header: its length.
pub(crate) const PREFIX: u64 = 8;

/// The format's own limit.
const HEADER_LIMIT: u64 = 100_000_000;

/// The one key that is no tensor.
pub(crate) const METADATA_KEY: &str = "__metadata__";

/// What is wrong with the header of a safetensors file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// Not even a length.
    #[error("{size} bytes, expected at least {PREFIX}")]
    TooShort {
        /// The file's size.
        size: u64,
    },
    /// A length beyond the format's limit.
    #[error("a header of {length} bytes, expected at most {HEADER_LIMIT}")]
    TooLong {
        /// The length stated.
        length: u64,
    },
    /// A header that ends after the file does.
    #[error("a header of {length} bytes, but only {available} follow")]
    Truncated {
        /// The length stated.
        length: u64,
        /// The bytes that there are.
        available: u64,
    },
    /// Not JSON, or not of the right form.
    #[error("its header is wrong: {0}")]
    Json(serde_json::Error),
    /// More elements than can be counted.
    #[error("tensor `{key}` of shape {shape:?} is too large to exist")]
    Overflow {
        /// The tensor.
        key: String,
        /// Its shape.
        shape: Vec<usize>,
    },
    /// A shape that does not go with the number of bytes.
    #[error("tensor `{key}` of shape {shape:?} and type {dtype} takes {expected} bytes, but its offsets span {found}")]
    Size {
        /// The tensor.
        key: String,
        /// Its shape.
        shape: Vec<usize>,
        /// Its element type.
        dtype: String,
        /// The bytes that it needs.
        expected: usize,
        /// The bytes between its offsets.
        found: usize,
    },
    /// Offsets in the wrong order.
    #[error("tensor `{key}` ends at {end}, before its start {start}")]
    Backwards {
        /// The tensor.
        key: String,
        /// Its start.
        start: usize,
        /// Its end.
        end: usize,
    },
    /// Tensors that overlap or leave a hole.
    #[error("tensor `{key}` starts at {start}, expected {expected}")]
    Offset {
        /// The tensor.
        key: String,
        /// Its start.
        start: usize,
        /// The end of the one before.
        expected: usize,
    },
    /// Tensors that end before or after the file does.
    #[error("its tensors take {expected} bytes, but {available} follow the header")]
    Length {
        /// The end of the last tensor.
        expected: u64,
        /// The bytes that there are.
        available: u64,
    },
}

/// Where one tensor lies.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    /// Bytes of the file.
    pub(super) range: Range<u64>,
}

/// The header's length, from the first bytes of a file of `size` bytes.
pub(super) fn header_length(prefix: [u8; PREFIX as usize], size: u64) -> Result<u64, HeaderError> {
    let length = u64::from_le_bytes(prefix);
    let available = size.saturating_sub(PREFIX);
    if length > HEADER_LIMIT {
        Err(HeaderError::TooLong { length })
    } else if length > available {
        Err(HeaderError::Truncated { length, available })
    } else {
        Ok(length)
    }
}

/// Reads the header `bytes` of a file of `size` bytes.
///
/// The tensors that come out lie within the file, one after the other, without overlaps or holes, and each has as
/// many bytes as its shape needs.
pub(super) fn parse(bytes: &[u8], size: u64) -> Result<Vec<Entry>, HeaderError> {
    let TensorEntries(mut tensors) = serde_json::from_slice(bytes).map_err(HeaderError::Json)?;
    tensors.sort_by_key(|(_, info)| info.data_offsets);

    let start_of_data = PREFIX + bytes.len() as u64;
    let mut entries = Vec::with_capacity(tensors.len());
    let mut expected = 0;
    for (key, TensorInfo { dtype, shape, data_offsets: (start, end) }) in tensors {
        if end < start {
            return Err(HeaderError::Backwards { key, start, end });
        }
        if start != expected {
            return Err(HeaderError::Offset { key, start, expected });
        }
        let Some(needed) = byte_count(&shape, dtype) else {
            return Err(HeaderError::Overflow { key, shape });
        };
        if end - start != needed {
            let (dtype, found) = (dtype.to_string(), end - start);
            return Err(HeaderError::Size { key, shape, dtype, expected: needed, found });
        }
        expected = end;
        let range = start_of_data.saturating_add(start as u64)..start_of_data.saturating_add(end as u64);
        entries.push(Entry { key, dtype, shape, range });
    }
    let available = size.saturating_sub(start_of_data);
    if expected as u64 != available {
        return Err(HeaderError::Length { expected: expected as u64, available });
    }
    Ok(entries)
}

/// The bytes that a tensor takes, or `None` when there is no such number.
fn byte_count(shape: &[usize], dtype: Dtype) -> Option<usize> {
    let elements = shape.iter().try_fold(1_usize, |count, &size| count.checked_mul(size))?;
    let bits = elements.checked_mul(dtype.bitsize())?;
    (bits % 8 == 0).then_some(bits / 8)
}
