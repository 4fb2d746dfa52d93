//! What a model author needs: `use patching_core::prelude::*`.

pub use crate::capture::{
    CanRecordOutputs, CaptureError, Captured, ConfigDefaults, Flag, ForwardKwargs, ModelOutput, OutputField,
    OutputRecorders,
};
pub use crate::class::{Init, ModuleClass, Slot};
pub use crate::patch::{
    apply_patches, class, clear_patch_mapping, get_patch_mapping, patch_output_recorders, register_patch_mapping,
    register_patch_mapping_with, unregister_patch_mapping,
};
pub use crate::weights::{PreTrainedModel, PretrainedConfig};
pub use capture_macros::{
    CanRecordOutputs, ConfigDefaults, ModelOutput, capture_outputs, merge_with_config_defaults, module_class, replaces,
};
