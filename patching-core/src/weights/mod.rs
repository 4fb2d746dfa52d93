//! Hugging Face checkpoints: reading, loading into a model, saving.
//!
//! A load goes in three steps. [`Checkpoint`] finds the tensors in the files without reading them. A plan then maps
//! each parameter of the model to the tensors and the steps that make it; all errors are known here. Only then are
//! tensors read, one parameter at a time.

mod applicable;
mod apply;
mod config;
pub(crate) mod conversion;
mod convert;
mod error;
mod fs;
mod keys;
mod layout;
mod options;
mod parameters;
mod plan;
mod pretrained;
mod reader;
mod report;
mod save;
mod tie;

pub use applicable::UnusedConversion;
pub use config::{ConfigError, ConfigHead, ConfigProblem, PretrainedConfig};
pub use conversion::{
    BuiltInConversion, Chunk, Concatenate, ConversionError, ConversionMapping, ConversionOperation, ConversionProblem,
    IntoPatterns, MergeModulelist, PermuteForRope, RestoreError, RuleError, Split, SplitModulelist, Submodel,
    Transpose, WeightConverter, WeightRenaming, WeightTransform, clear_checkpoint_conversion_mapping,
    get_checkpoint_conversion_mapping, register_checkpoint_conversion_mapping,
    register_checkpoint_conversion_mapping_with, unregister_checkpoint_conversion_mapping,
};
pub use error::{LoadError, ReadError, SaveError};
pub use fs::read_text;
pub use layout::{LayoutRules, Operation, ParameterLayout};
pub use options::{CheckpointLayout, LoadOptions, Progress, ProgressCallback, ReadMode, SaveOptions};
pub use pretrained::PreTrainedModel;
pub use reader::{Checkpoint, HeaderError, IndexError, StoredTensor};
pub use report::{CastKey, CastReason, ConvertedKey, LoadReport, MismatchedKey, MissingKey, RenamedKey, TiedKey};
pub use save::SaveReport;
