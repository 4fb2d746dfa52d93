//! How to load and how to save.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use burn::tensor::{DType, FloatDType};

use super::conversion::ConversionMapping;
use super::error::LoadError;
use super::layout::LayoutRules;
use crate::patch::PatchSet;

/// How the files of a checkpoint get into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadMode {
    /// Maps the files. On a CPU backend that takes tensors as they are, parameters then lie on the map: loading is
    /// immediate, pages come in when they are first used, and several processes share them. Parameters that are put
    /// together of several tensors are so when they are first used, too. The files must not be changed in place while
    /// the model lives; replacing or deleting them is fine.
    #[default]
    Map,
    /// Reads every tensor into memory of its own.
    Read,
}

/// How far a load or a save is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Progress {
    /// The tensor just finished.
    pub key: String,
    /// Tensors finished.
    pub tensors: usize,
    /// Tensors in all.
    pub total_tensors: usize,
    /// Bytes finished, as in the file.
    pub bytes: u64,
    /// Bytes in all.
    pub total_bytes: u64,
}

/// Told of every tensor that was loaded or saved.
pub type ProgressCallback = Arc<dyn Fn(Progress) + Send + Sync>;

/// How to load a model.
///
/// ```
/// use patching_core::weights::{LoadOptions, ReadMode};
/// use burn::tensor::FloatDType;
///
/// let options = LoadOptions::new().dtype(FloatDType::F32).read_mode(ReadMode::Read).allow_missing(true);
/// # let _ = options;
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct LoadOptions {
    /// The element type of float parameters; as stored where `None`.
    pub dtype: Option<FloatDType>,
    /// The attention implementation; the config's where `None`.
    pub attn_implementation: Option<String>,
    /// What to put in the place of the model's classes; the registered patches where `None`.
    pub patches: Option<PatchSet>,
    /// The implementation of mixtures of experts; the config's where `None`.
    pub experts_implementation: Option<String>,
    /// Whether to map the files or to read them.
    pub read_mode: ReadMode,
    /// Whether parameters without a value in the checkpoint keep the one they have.
    pub allow_missing: bool,
    /// Whether parameters whose value in the checkpoint does not fit keep the one they have.
    pub ignore_mismatched: bool,
    /// Layouts of the caller's own layers, beside those of the model.
    pub layouts: LayoutRules,
    /// The rules of this load, instead of those that are registered or built in.
    pub conversions: Option<ConversionMapping>,
    /// Told of every tensor loaded.
    pub progress: Option<ProgressCallback>,
}

impl LoadOptions {
    /// As stored, mapped, and every parameter must have a value that fits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Converts float parameters to `dtype` (where the device computes in it, else to `f32`).
    #[must_use]
    pub fn dtype(mut self, dtype: impl Into<Option<FloatDType>>) -> Self {
        self.dtype = dtype.into();
        self
    }

    /// Chooses the attention implementation.
    #[must_use]
    pub fn attn_implementation(mut self, name: impl Into<String>) -> Self {
        self.attn_implementation = Some(name.into());
        self
    }

    /// Replaces classes of the model by these patches instead of the registered ones.
    #[must_use]
    pub fn patches(mut self, patches: impl Into<Option<PatchSet>>) -> Self {
        self.patches = patches.into();
        self
    }

    /// Chooses the implementation of mixtures of experts. A model without experts refuses every name.
    #[must_use]
    pub fn experts_implementation(mut self, name: impl Into<String>) -> Self {
        self.experts_implementation = Some(name.into());
        self
    }

    /// Maps or reads the files.
    #[must_use]
    pub fn read_mode(mut self, mode: ReadMode) -> Self {
        self.read_mode = mode;
        self
    }

    /// Lets parameters without a value in the checkpoint keep the one they have.
    #[must_use]
    pub fn allow_missing(mut self, allow: bool) -> Self {
        self.allow_missing = allow;
        self
    }

    /// Lets parameters whose value in the checkpoint does not fit keep the one they have.
    #[must_use]
    pub fn ignore_mismatched(mut self, ignore: bool) -> Self {
        self.ignore_mismatched = ignore;
        self
    }

    /// Adds layouts of the caller's own layers; they come before those of the model.
    #[must_use]
    pub fn layouts(mut self, rules: LayoutRules) -> Self {
        self.layouts = rules;
        self
    }

    /// Converts by `mapping` alone, whatever is registered or built in.
    #[must_use]
    pub fn conversions(mut self, mapping: impl Into<Option<ConversionMapping>>) -> Self {
        self.conversions = mapping.into();
        self
    }

    /// Tells `callback` of every tensor loaded. A panic in it leaves the load as a panic.
    #[must_use]
    pub fn progress(mut self, callback: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(callback));
        self
    }

    /// Whether they can be followed for a model that is constructed already.
    pub(crate) fn check_constructed(&self) -> Result<(), LoadError> {
        let given = [
            ("attn_implementation", self.attn_implementation.is_some()),
            ("patches", self.patches.is_some()),
            ("experts_implementation", self.experts_implementation.is_some()),
        ];
        let options: Vec<_> = given.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect();
        if options.is_empty() { Ok(()) } else { Err(LoadError::Constructed { options }) }
    }
}

impl fmt::Debug for LoadOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            dtype,
            attn_implementation,
            patches,
            experts_implementation,
            read_mode,
            allow_missing,
            ignore_mismatched,
            layouts,
            conversions,
            progress,
        } = self;
        formatter
            .debug_struct("LoadOptions")
            .field("dtype", dtype)
            .field("attn_implementation", attn_implementation)
            .field("patches", patches)
            .field("experts_implementation", experts_implementation)
            .field("read_mode", read_mode)
            .field("allow_missing", allow_missing)
            .field("ignore_mismatched", ignore_mismatched)
            .field("layouts", layouts)
            .field("conversions", conversions)
            .field("progress", &progress.is_some())
            .finish()
    }
}

/// Which tensors a saved checkpoint has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum CheckpointLayout {
    /// Those of the checkpoint that the model was loaded from. For a model that was not loaded, those that the rules make
    /// the parameters of.
    #[default]
    Original,
    /// Those that the rules make the parameters of, whatever layout the model was loaded from: of a mixture of experts a
    /// tensor for each expert, also if they came in one.
    Published,
    /// The parameters of the model, under their own names. Conversions cannot be given along.
    Model,
}

/// The largest file unless told otherwise, as in the reference: 50 GB.
const MAX_SHARD_SIZE: u64 = 50_000_000_000;

/// How to save a model.
///
/// ```
/// use patching_core::weights::SaveOptions;
///
/// let options = SaveOptions::new().max_shard_size(5_000_000_000);
/// # let _ = options;
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct SaveOptions {
    /// A file holds at most this many bytes of tensors, unless a single tensor has more.
    pub max_shard_size: u64,
    /// The element type of float parameters; as they are where `None`.
    pub dtype: Option<FloatDType>,
    /// A folder whose other files (tokenizer, generation config) are copied along.
    pub copy_extra_files_from: Option<PathBuf>,
    /// Layouts of the caller's own layers, beside those of the model.
    pub layouts: LayoutRules,
    /// Whether to undo what was converted.
    pub layout: CheckpointLayout,
    /// The rules to undo, instead of what the model was loaded by and of those that are registered or built in.
    pub conversions: Option<ConversionMapping>,
    /// Told of every tensor saved.
    pub progress: Option<ProgressCallback>,
}

impl Default for SaveOptions {
    fn default() -> Self {
        Self {
            max_shard_size: MAX_SHARD_SIZE,
            dtype: None,
            copy_extra_files_from: None,
            layouts: LayoutRules::default(),
            layout: CheckpointLayout::default(),
            conversions: None,
            progress: None,
        }
    }
}

impl SaveOptions {
    /// In the layout of the checkpoint, with elements as they are, in files of at most 50 GB.
    pub fn new() -> Self {
        Self::default()
    }

    /// Limits a file to `bytes` bytes of tensors.
    #[must_use]
    pub fn max_shard_size(mut self, bytes: u64) -> Self {
        self.max_shard_size = bytes;
        self
    }

    /// Converts float parameters to `dtype` on the way.
    #[must_use]
    pub fn dtype(mut self, dtype: impl Into<Option<FloatDType>>) -> Self {
        self.dtype = dtype.into();
        self
    }

    /// Copies the files of `dir` that saving does not write: tokenizer, generation config, licence. Weights in any
    /// format and `config.json` are not copied, nor are folders; a file that the target has already is kept.
    #[must_use]
    pub fn copy_extra_files_from(mut self, dir: impl Into<PathBuf>) -> Self {
        self.copy_extra_files_from = Some(dir.into());
        self
    }

    /// Adds layouts of the caller's own layers; they come before those of the model.
    #[must_use]
    pub fn layouts(mut self, rules: LayoutRules) -> Self {
        self.layouts = rules;
        self
    }

    /// Saves the tensors of the checkpoint, or those of the model.
    #[must_use]
    pub fn layout(mut self, layout: CheckpointLayout) -> Self {
        self.layout = layout;
        self
    }

    /// Undoes the rules of `mapping`, whatever the model was loaded by, or is registered or built in. With
    /// [`CheckpointLayout::Model`], which undoes none, that is an error.
    #[must_use]
    pub fn conversions(mut self, mapping: impl Into<Option<ConversionMapping>>) -> Self {
        self.conversions = mapping.into();
        self
    }

    /// Tells `callback` of every tensor saved.
    #[must_use]
    pub fn progress(mut self, callback: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(callback));
        self
    }
}

impl fmt::Debug for SaveOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { max_shard_size, dtype, copy_extra_files_from, layouts, layout, conversions, progress } = self;
        formatter
            .debug_struct("SaveOptions")
            .field("max_shard_size", max_shard_size)
            .field("dtype", dtype)
            .field("copy_extra_files_from", copy_extra_files_from)
            .field("layouts", layouts)
            .field("layout", layout)
            .field("conversions", conversions)
            .field("progress", &progress.is_some())
            .finish()
    }
}

/// Counts what has been done and tells the callback.
pub(crate) struct Meter<'a> {
    callback: Option<&'a ProgressCallback>,
    tensors: usize,
    total_tensors: usize,
    bytes: u64,
    total_bytes: u64,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(callback: Option<&'a ProgressCallback>, total_tensors: usize, total_bytes: u64) -> Self {
        Self { callback, tensors: 0, total_tensors, bytes: 0, total_bytes }
    }

    pub(crate) fn finished(&mut self, key: &str, bytes: u64) {
        self.tensors += 1;
        self.bytes += bytes;
        if let Some(callback) = self.callback {
            callback(Progress {
                key: key.to_owned(),
                tensors: self.tensors,
                total_tensors: self.total_tensors,
                bytes: self.bytes,
                total_bytes: self.total_bytes,
            });
        }
    }
}

/// The element type that a float of type `stored` gets when `wanted` is asked for.
pub(crate) fn float_dtype(stored: DType, wanted: Option<FloatDType>) -> DType {
    wanted.map_or(stored, DType::from)
}
