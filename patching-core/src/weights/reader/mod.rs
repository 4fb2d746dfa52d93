//! Reading the files of a checkpoint.

mod buffer;
mod element;
mod file;
mod header;
mod index;
mod mapping;
mod unique;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};

use burn::tensor::{BoolStore, Bytes, DType, TensorData};
use safetensors::tensor::Dtype;

pub use header::HeaderError;
pub use index::IndexError;

pub(crate) use buffer::aligned;
pub(crate) use element::{to_burn, to_file};
pub(crate) use header::METADATA_KEY;

use self::file::WeightFile;
use self::header::Entry;
use super::error::ReadError;
use super::fs::{Stamp, read_text};
use super::options::ReadMode;

/// The file of a checkpoint that is not sharded.
pub(crate) const WEIGHTS_NAME: &str = "model.safetensors";
/// The index of one that is.
pub(crate) const INDEX_NAME: &str = "model.safetensors.index.json";

/// As much as a safetensors header may have.
const INDEX_LIMIT: u64 = 100_000_000;

/// How often a checkpoint that is being replaced is opened anew.
const ATTEMPTS: usize = 5;

/// The tensors of a checkpoint, found but not read.
///
/// `model.safetensors` is taken where it exists, else the shards that `model.safetensors.index.json` names, as the
/// reference does. Symbolic links are followed.
#[derive(Debug)]
pub struct Checkpoint {
    files: Vec<WeightFile>,
    tensors: BTreeMap<String, StoredTensor>,
}

/// One tensor of a checkpoint.
#[derive(Debug, Clone)]
pub struct StoredTensor {
    file: usize,
    dtype: Dtype,
    shape: Vec<usize>,
    range: Range<u64>,
}

impl StoredTensor {
    /// Its shape, as in the file.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Its element type, where Burn has it.
    pub fn dtype(&self) -> Option<DType> {
        to_burn(self.dtype)
    }

    /// The name of its element type in the file (`BF16`).
    pub fn dtype_name(&self) -> String {
        self.dtype.to_string()
    }

    /// Its size in bytes.
    pub fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Checkpoint {
    /// Opens the checkpoint in the folder `dir` and reads the headers of its files.
    ///
    /// # Errors
    ///
    /// When there are no weights, or when a file or the index is wrong in any way: nothing in it is trusted.
    pub fn open(dir: impl AsRef<Path>, mode: ReadMode) -> Result<Self, ReadError> {
        let dir = dir.as_ref();
        for _ in 0..ATTEMPTS {
            let before = stamps(dir);
            let opened = Self::open_once(dir, mode);
            // Shards of two versions of a checkpoint would go together unnoticed, and one that is just being replaced
            // may have lost a shard for a moment.
            if before == stamps(dir) {
                return opened;
            }
        }
        Err(ReadError::Changing { dir: dir.to_owned() })
    }

    fn open_once(dir: &Path, mode: ReadMode) -> Result<Self, ReadError> {
        let single = dir.join(WEIGHTS_NAME);
        if exists(&single)? {
            let (file, entries) = WeightFile::open(single, mode)?;
            let tensors = entries.into_iter().map(|entry| stored(0, entry)).collect();
            return Ok(Self { files: vec![file], tensors });
        }
        let index = dir.join(INDEX_NAME);
        if exists(&index)? {
            return Self::open_shards(dir, index, mode);
        }
        // A folder that is not there deserves the system's own message.
        std::fs::metadata(dir).map_err(|source| ReadError::io(dir, "open", source))?;
        Err(ReadError::NoWeights { dir: dir.to_owned() })
    }

    fn open_shards(dir: &Path, index: PathBuf, mode: ReadMode) -> Result<Self, ReadError> {
        let text = read_text(&index, INDEX_LIMIT)?;
        let invalid = |source| ReadError::Index { path: index.clone(), source };
        let weight_map = index::parse(&text).map_err(invalid)?;

        let mut numbers = BTreeMap::new();
        for (key, shard) in &weight_map {
            numbers.entry(shard.as_str()).or_insert((0, key.as_str()));
        }
        let mut names = Vec::with_capacity(numbers.len());
        let mut files = Vec::with_capacity(numbers.len());
        let mut tensors: BTreeMap<String, StoredTensor> = BTreeMap::new();
        for (number, (&shard, (own, key))) in numbers.iter_mut().enumerate() {
            *own = number;
            let path = dir.join(shard);
            if !exists(&path)? {
                return Err(invalid(IndexError::MissingShard { shard: shard.to_owned(), key: (*key).to_owned() }));
            }
            let (file, entries) = WeightFile::open(path, mode)?;
            files.push(file);
            names.push(shard);
            for (key, tensor) in entries.into_iter().map(|entry| stored(number, entry)) {
                if let Some(other) = tensors.get(&key) {
                    let (first, second) = (names[other.file].to_owned(), shard.to_owned());
                    return Err(invalid(IndexError::DuplicateTensor { key, first, second }));
                }
                tensors.insert(key, tensor);
            }
        }
        let numbers: HashMap<_, _> = numbers.iter().map(|(shard, (number, _))| (*shard, *number)).collect();
        for (key, shard) in &weight_map {
            let found = tensors.get(key).map(|tensor| tensor.file);
            if found != numbers.get(shard.as_str()).copied() {
                let found = found.map(|number| names[number].to_owned());
                return Err(invalid(IndexError::WrongShard { key: key.clone(), shard: shard.clone(), found }));
            }
        }
        Ok(Self { files, tensors })
    }

    /// Every tensor with its key, in the order of the keys.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, &StoredTensor)> {
        self.tensors.iter().map(|(key, tensor)| (key.as_str(), tensor))
    }

    /// The tensor with the key `key`.
    pub fn get(&self, key: &str) -> Option<&StoredTensor> {
        self.tensors.get(key)
    }

    /// The file that `tensor` lies in.
    pub fn path_of(&self, tensor: &StoredTensor) -> Option<&Path> {
        self.files.get(tensor.file).map(WeightFile::path)
    }

    /// The elements of the tensor with the key `key`; from mapped files without a copy.
    ///
    /// # Errors
    ///
    /// When there is no such tensor, its file cannot be read, Burn lacks its element type, or it is boolean and holds
    /// something else than 0 and 1.
    pub fn read(&self, key: &str) -> Result<TensorData, ReadError> {
        let Some((tensor, file)) = self.get(key).and_then(|tensor| Some((tensor, self.files.get(tensor.file)?))) else {
            return Err(ReadError::NoTensor { key: key.to_owned() });
        };
        let unsupported = || ReadError::UnsupportedDtype { key: key.to_owned(), dtype: tensor.dtype_name() };
        let dtype = tensor.dtype().ok_or_else(unsupported)?;
        let bytes = file.bytes(tensor.range.clone(), dtype)?;
        check_bool(key, dtype, &bytes)?;
        TensorData::try_from_bytes(bytes, tensor.shape.clone(), dtype).map_err(|_| unsupported())
    }

    /// Where some elements of a tensor lie, given by their numbers; those may depend on the size of one.
    fn locate(
        &self,
        key: &str,
        elements: impl FnOnce(usize) -> Range<usize>,
    ) -> Result<(&WeightFile, DType, Range<u64>), ReadError> {
        let absent = || ReadError::NoTensor { key: key.to_owned() };
        let tensor = self.get(key).ok_or_else(absent)?;
        let file = self.files.get(tensor.file).ok_or_else(absent)?;
        let unsupported = || ReadError::UnsupportedDtype { key: key.to_owned(), dtype: tensor.dtype_name() };
        let dtype = tensor.dtype().ok_or_else(unsupported)?;
        let elements = elements(dtype.size());
        let place = |element: usize| tensor.range.start + (element * dtype.size()) as u64;
        let range = place(elements.start)..place(elements.end);
        if range.end > tensor.range.end { Err(absent()) } else { Ok((file, dtype, range)) }
    }

    /// Some elements of a tensor, by their numbers; from mapped files without a copy, but for truth values.
    pub(crate) fn read_elements(&self, key: &str, elements: Range<usize>) -> Result<Bytes, ReadError> {
        let (file, dtype, range) = self.locate(key, |_| elements)?;
        let bytes = file.bytes(range, dtype)?;
        check_bool(key, dtype, &bytes)?;
        Ok(bytes)
    }

    /// Fills `buffer` with the elements of a tensor from the one number `from` on.
    pub(crate) fn read_into(&self, key: &str, from: usize, buffer: &mut [u8]) -> Result<(), ReadError> {
        let (file, dtype, range) = self.locate(key, |size| from..from + buffer.len() / size.max(1))?;
        file.read_into(range.start, buffer)?;
        check_bool(key, dtype, buffer)
    }

    /// Whether two tensors are the same in type, shape and every byte.
    pub(crate) fn are_equal(&self, first: &str, second: &str) -> Result<bool, ReadError> {
        let (Some(one), Some(other)) = (self.get(first), self.get(second)) else {
            return Ok(false);
        };
        if one.dtype != other.dtype || one.shape != other.shape {
            return Ok(false);
        }
        Ok(self.read(first)?.bytes()[..] == self.read(second)?.bytes()[..])
    }
}

/// Truth values have two forms.
fn check_bool(key: &str, dtype: DType, bytes: &[u8]) -> Result<(), ReadError> {
    if dtype == DType::Bool(BoolStore::Native)
        && let Some(&value) = bytes.iter().find(|&&value| value > 1)
    {
        return Err(ReadError::InvalidBool { key: key.to_owned(), value });
    }
    Ok(())
}

fn stored(file: usize, entry: Entry) -> (String, StoredTensor) {
    let Entry { key, dtype, shape, range } = entry;
    (key, StoredTensor { file, dtype, shape, range })
}

fn exists(path: &Path) -> Result<bool, ReadError> {
    path.try_exists().map_err(|source| ReadError::io(path, "open", source))
}

/// What changes whenever the checkpoint in `dir` is replaced.
fn stamps(dir: &Path) -> [Option<Stamp>; 2] {
    [WEIGHTS_NAME, INDEX_NAME].map(|name| Stamp::of(&dir.join(name)))
}
