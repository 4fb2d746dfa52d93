//! What can go wrong while a checkpoint is read, loaded or saved.

use std::io;
use std::path::{Path, PathBuf};

use burn::tensor::DType;
use thiserror::Error;

use super::config::ConfigError;
use super::conversion::{ConversionError, RestoreError};
use super::reader::{HeaderError, IndexError};
use super::report::LoadReport;
use crate::names::list;
use crate::patch::PatchError;

/// A checkpoint's files cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The operating system refused.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The reason given.
        source: io::Error,
    },
    /// Something other than a regular file.
    #[error("`{}` is not a regular file", path.display())]
    NotAFile {
        /// Its path.
        path: PathBuf,
    },
    /// A file beyond the size that is read.
    #[error("`{}` has {size} bytes, expected at most {limit}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// A text file that is not UTF-8.
    #[error("`{}` is not UTF-8 text", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// A folder without weights.
    #[error("no `model.safetensors` and no `model.safetensors.index.json` in `{}`", dir.display())]
    NoWeights {
        /// The folder.
        dir: PathBuf,
    },
    /// A safetensors file whose header is wrong.
    #[error("`{}` is not a valid safetensors file: {source}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: HeaderError,
    },
    /// An index of shards that is wrong.
    #[error("`{}` is not a valid index of shards: {source}", path.display())]
    Index {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: IndexError,
    },
    /// A checkpoint that is being rewritten faster than it can be opened.
    #[error("the checkpoint in `{}` changed while it was opened", dir.display())]
    Changing {
        /// The folder.
        dir: PathBuf,
    },
    /// A boolean tensor holding something other than 0 and 1.
    #[error("`{key}` is a boolean tensor but holds the byte {value}, expected 0 or 1")]
    InvalidBool {
        /// The tensor's key.
        key: String,
        /// The first wrong byte.
        value: u8,
    },
    /// A tensor that the checkpoint does not have.
    #[error("the checkpoint has no tensor `{key}`")]
    NoTensor {
        /// The key looked for.
        key: String,
    },
    /// An element type that Burn has no counterpart for.
    #[error("`{key}` has element type {dtype}, which cannot be loaded")]
    UnsupportedDtype {
        /// The tensor's key.
        key: String,
        /// Its element type as in the file.
        dtype: String,
    },
}

impl ReadError {
    pub(crate) fn io(path: &Path, action: &'static str, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }
}

/// A model cannot be loaded.
#[derive(Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The config cannot be read.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The weights' files cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The patches could not be applied. Nothing was loaded.
    #[error("cannot replace classes of the model: {0}")]
    Patch(#[from] PatchError),
    /// Options that cannot be followed for a model that is there already. Nothing was loaded.
    #[error(
        "{} of the load options can only be chosen when a model is constructed; use `from_pretrained_with`",
        list(options)
    )]
    Constructed {
        /// The names of the options.
        options: Vec<&'static str>,
    },
    /// The conversions that are built in for the model cannot be used. Nothing was loaded.
    #[error(transparent)]
    Conversion(#[from] ConversionError),
    /// Parameters without a value, or with one that does not fit. Nothing was loaded.
    #[error("the checkpoint does not fit the model\n{0}")]
    Weights(Box<LoadReport>),
    /// Two parameters of the model that would be one tensor of the checkpoint.
    #[error("the parameters `{first}` and `{second}` of the model both have the key `{key}`")]
    DuplicateParameter {
        /// The key.
        key: String,
        /// The path of the one.
        first: String,
        /// The path of the other.
        second: String,
    },
    /// A pair of tied parameters that the model does not have, or that cannot share a value.
    #[error("`{tied}` cannot be tied to `{source_path}`: {reason}")]
    InvalidTie {
        /// The parameter that takes the value.
        tied: String,
        /// The parameter that gives it.
        source_path: String,
        /// Why not.
        reason: String,
    },
    /// Two tensors of the checkpoint that differ, though the model has one parameter for both.
    #[error(
        "`{key}` differs from `{source_key}` in the checkpoint, but the config ties them and the model has one \
         parameter for both; with `tie_word_embeddings` false in the config both are loaded"
    )]
    Untied {
        /// The tensor that the model has no parameter for.
        key: String,
        /// The one whose parameter it would share.
        source_key: String,
    },
    /// A layout rule that does not suit the parameter that it was given for.
    #[error("the layout rule for `{path}` does not suit its shape {shape:?}")]
    InvalidLayout {
        /// The parameter.
        path: String,
        /// Its shape in the model.
        shape: Vec<usize>,
    },
    /// A tensor's elements could not be converted.
    #[error("cannot convert `{key}` from {from:?} to {to:?}: {reason}")]
    Convert {
        /// The tensor's key.
        key: String,
        /// The element type in the file.
        from: DType,
        /// The element type asked for.
        to: DType,
        /// The reason given.
        reason: String,
    },
}

crate::__debug_as_display!(LoadError);

/// A model cannot be saved. What was in the folder before is untouched.
#[derive(Error)]
#[non_exhaustive]
pub enum SaveError {
    /// The operating system refused.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The reason given.
        source: io::Error,
    },
    /// The config cannot be written as JSON.
    #[error("cannot serialise the config: {0}")]
    Config(serde_json::Error),
    /// A config that is not a JSON object.
    #[error("the config serialises as {found}, expected an object")]
    ConfigShape {
        /// What it is instead.
        found: &'static str,
    },
    /// Two parameters of the model that would be one tensor of the checkpoint.
    #[error("the parameters `{first}` and `{second}` of the model both have the key `{key}`")]
    DuplicateParameter {
        /// The key.
        key: String,
        /// The path of the one.
        first: String,
        /// The path of the other.
        second: String,
    },
    /// An element type that has no place in a safetensors file.
    #[error("`{path}` has element type {dtype:?}, which safetensors does not have")]
    UnsupportedDtype {
        /// The parameter.
        path: String,
        /// Its element type.
        dtype: DType,
    },
    /// A parameter with an adapter on it.
    #[error("`{path}` belongs to an adapter, which a checkpoint cannot hold; call `materialize()` on the model first")]
    Adapter {
        /// The adapter's parameter.
        path: String,
    },
    /// A layout rule that does not suit the parameter that it was given for.
    #[error("the layout rule for `{path}` does not suit its shape {shape:?}")]
    InvalidLayout {
        /// The parameter.
        path: String,
        /// Its shape in the model.
        shape: Vec<usize>,
    },
    /// The conversions that are built in for the model cannot be used.
    #[error(transparent)]
    Conversion(#[from] ConversionError),
    /// The parameters cannot be brought back into the layout of a checkpoint.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// Rules for a save in the model's own layout.
    #[error("`CheckpointLayout::Model` undoes no conversions, but the options give some; choose one of the two")]
    ConversionsInModelLayout,
    /// Two tensors of one name.
    #[error("two tensors would have the key `{key}`")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// A shard size of nothing.
    #[error("the largest shard size is 0 bytes, expected at least 1")]
    ShardSize,
    /// A name in the checkpoint that safetensors keeps for itself.
    #[error("a parameter has the key `{key}`, which safetensors reserves")]
    ReservedKey {
        /// The key.
        key: String,
    },
    /// The header of a file could not be made.
    #[error("cannot make the header of `{file}`: {reason}")]
    Header {
        /// The file's name.
        file: String,
        /// The reason given.
        reason: String,
    },
    /// A parameter's elements could not be converted.
    #[error("cannot convert `{key}` from {from:?} to {to:?}: {reason}")]
    Convert {
        /// The key that the tensor would have.
        key: String,
        /// The element type in the model.
        from: DType,
        /// The element type asked for.
        to: DType,
        /// The reason given.
        reason: String,
    },
    /// A tensor could not be read from its device.
    #[error("cannot read `{path}` from its device: {reason}")]
    Tensor {
        /// The parameter.
        path: String,
        /// The reason given.
        reason: String,
    },
}

crate::__debug_as_display!(SaveError);

impl SaveError {
    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}
