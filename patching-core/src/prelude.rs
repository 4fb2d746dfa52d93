//! What a model author needs: `use patching_core::prelude::*`.

pub use crate::capture::{
    CanRecordOutputs, CaptureError, Captured, ConfigDefaults, Flag, ForwardKwargs, ModelOutput, OutputField,
    OutputRecorders,
};
pub use crate::class::{Init, ModuleClass, Slot};
pub use crate::patch::{
    PatchSet, apply_patches, class, clear_patch_mapping, get_patch_mapping, original, patch_output_recorders,
    register_patch_mapping, register_patch_mapping_with, replace_slots, unregister_patch_mapping,
};
pub use crate::weights::{
    PreTrainedModel, PretrainedConfig, WeightConverter, WeightRenaming, register_checkpoint_conversion_mapping,
    register_checkpoint_conversion_mapping_with, unregister_checkpoint_conversion_mapping,
};
pub use capture_macros::{
    CanRecordOutputs, ConfigDefaults, ModelOutput, capture_outputs, merge_with_config_defaults, module_class, replaces,
};
