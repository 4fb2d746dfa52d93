//! Recording and replacing the submodules of Burn models, and loading Hugging Face checkpoints into them.

#![deny(unsafe_code)]

// The macros name this crate by its path, also inside it.
extern crate self as patching_core;

pub mod capture;
pub mod class;
mod names;
pub mod patch;
pub mod prelude;
pub mod weights;

/// What the macros' code calls. Not for use by hand: it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use crate::capture::check::{
        CapturesOutputs, GoesInto, HoldsSomething, InResult, LayerCount, NoCaptureOutputs, NotInResult, Records,
    };
    pub use crate::capture::merge::{
        DeviceByWalk, DeviceOf, NoDevice, first_device, merged, merged_kwargs, merged_select_strategy,
        merged_use_cache, with_arguments,
    };
    pub use crate::capture::run::{IsResult, Options, Runner, Runs, plan};
    pub use crate::capture::{Argument, Call, Field, NoTensor, Raw, enter, is_complete};
    pub use crate::class::{ClassName, Construct, Erased, Failed, Hooked};
    pub use crate::patch::{Replacement, ReplacementClass};
    pub use burn::module::Module;
    pub use burn::tensor::Device;
    pub use inventory;
}

pub use capture_macros::{
    CanRecordOutputs, ConfigDefaults, ModelOutput, capture_outputs, merge_with_config_defaults, module_class, replaces,
};
