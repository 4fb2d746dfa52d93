//! One safetensors file, mapped or read.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use burn::tensor::{AllocationProperty, Bytes, DType};

use super::buffer::aligned;
use super::header::{self, Entry, HeaderError, PREFIX};
use super::mapping;
use crate::weights::error::ReadError;
use crate::weights::fs::{open_regular, read_exact_at};
use crate::weights::options::ReadMode;

/// A file whose header was found to be right.
#[derive(Debug)]
pub(super) struct WeightFile {
    path: PathBuf,
    file: File,
    /// All of it, where it is mapped. What is copied anyway is read all the same: pages of a map would count as this
    /// process's memory until the system takes them away.
    map: Option<bytes::Bytes>,
}

impl WeightFile {
    /// Opens the file at `path` and reads its header, once.
    pub(super) fn open(path: PathBuf, mode: ReadMode) -> Result<(Self, Vec<Entry>), ReadError> {
        let (file, metadata) = open_regular(&path)?;
        let size = metadata.len();
        let invalid = |source| ReadError::Header { path: path.clone(), source };
        let failed = |source| ReadError::io(&path, "read", source);

        if size < PREFIX {
            return Err(invalid(HeaderError::TooShort { size }));
        }
        let mut prefix = [0; PREFIX as usize];
        read_exact_at(&file, &mut prefix, 0).map_err(failed)?;
        let length = header::header_length(prefix, size).map_err(invalid)?;
        // The length was checked against the file's, so this asks for no more memory than the file takes on the disk.
        let mut bytes = vec![0; length as usize];
        read_exact_at(&file, &mut bytes, PREFIX).map_err(failed)?;
        let entries = header::parse(&bytes, size).map_err(invalid)?;

        let map = match mode {
            ReadMode::Read => None,
            ReadMode::Map => {
                let len = usize::try_from(size).map_err(|_| failed(std::io::ErrorKind::FileTooLarge.into()))?;
                Some(mapping::map(&file, len).map_err(|source| ReadError::io(&path, "map", source))?)
            }
        };
        Ok((Self { path, file, map }, entries))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The elements of type `dtype` at `range`, aligned for their type.
    ///
    /// From a map without a copy, unless the file has them at an odd place.
    pub(super) fn bytes(&self, range: Range<u64>, dtype: DType) -> Result<Bytes, ReadError> {
        let size = dtype.size();
        if let Some(map) = &self.map
            && !dtype.is_bool()
        {
            let shared = map.slice(range.start as usize..range.end as usize);
            if shared.as_ptr().align_offset(size.max(1)) == 0 {
                return Ok(Bytes::from_shared(shared, AllocationProperty::File));
            }
        }
        let len = (range.end - range.start) as usize;
        aligned(size, len, |buffer| self.read_into(range.start, buffer))
    }

    /// Fills `buffer` with the bytes from `start` on.
    pub(super) fn read_into(&self, start: u64, buffer: &mut [u8]) -> Result<(), ReadError> {
        read_exact_at(&self.file, buffer, start).map_err(|source| ReadError::io(&self.path, "read", source))
    }
}
