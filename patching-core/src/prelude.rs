//! What a model author needs: `use patching_core::prelude::*`.

pub use crate::capture::{
    CanRecordOutputs, CaptureError, Captured, ConfigDefaults, Flag, ForwardKwargs, ModelOutput, OutputField,
    OutputRecorders,
};
pub use crate::class::{Init, ModuleClass, Slot};
pub use crate::weights::{PreTrainedModel, PretrainedConfig};
pub use capture_macros::{
    CanRecordOutputs, ConfigDefaults, ModelOutput, capture_outputs, merge_with_config_defaults, module_class,
};
