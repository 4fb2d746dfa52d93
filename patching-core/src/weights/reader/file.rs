//! One safetensors file, mapped or read.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use burn::tensor::{AllocationProperty, Bytes, DType};
use bytemuck::Pod;

use super::header::{self, Entry, HeaderError, PREFIX};
use super::mapping;
use crate::weights::error::ReadError;
use crate::weights::fs::{open_regular, read_exact_at};
use crate::weights::options::ReadMode;

/// A file whose header was found to be right.
#[derive(Debug)]
pub(super) struct WeightFile {
    path: PathBuf,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Mapped(bytes::Bytes),
    Opened(File),
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

        let content = match mode {
            ReadMode::Read => Content::Opened(file),
            ReadMode::Map => {
                let len = usize::try_from(size).map_err(|_| failed(std::io::ErrorKind::FileTooLarge.into()))?;
                Content::Mapped(mapping::map(&file, len).map_err(|source| ReadError::io(&path, "map", source))?)
            }
        };
        Ok((Self { path, content }, entries))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The elements of type `dtype` at `range`, aligned for their type.
    ///
    /// From a map without a copy, unless the file has them at an odd place.
    pub(super) fn bytes(&self, range: Range<u64>, dtype: DType) -> Result<Bytes, ReadError> {
        let size = dtype.size();
        if let Content::Mapped(map) = &self.content
            && !dtype.is_bool()
        {
            let shared = map.slice(range.start as usize..range.end as usize);
            if shared.as_ptr().align_offset(size.max(1)) == 0 {
                return Ok(Bytes::from_shared(shared, AllocationProperty::File));
            }
        }
        match size {
            1 => self.elements::<u8>(range),
            2 => self.elements::<u16>(range),
            4 => self.elements::<u32>(range),
            _ => self.elements::<u64>(range),
        }
    }

    fn elements<E: Pod + Send + Sync>(&self, range: Range<u64>) -> Result<Bytes, ReadError> {
        let len = (range.end - range.start) as usize;
        let mut elements = vec![E::zeroed(); len / size_of::<E>()];
        let buffer: &mut [u8] = bytemuck::cast_slice_mut(&mut elements);
        match &self.content {
            Content::Mapped(map) => buffer.copy_from_slice(&map[range.start as usize..range.end as usize]),
            Content::Opened(file) => {
                read_exact_at(file, buffer, range.start).map_err(|source| ReadError::io(&self.path, "read", source))?
            }
        }
        Ok(Bytes::from_elems(elements))
    }
}
