use patching_core::weights::{ConfigError, LoadError};
use std::path::PathBuf;
use thiserror::Error;

/// Why a checkpoint was not loaded.
#[derive(Error)]
#[non_exhaustive]
pub enum AutoError {
    /// The checkpoint is of a family that is not known here.
    #[error("unknown model_type `{found}`{} (expected one of: {})", crate::error::did_you_mean(.found, .known), .known.join(", "))]
    UnknownFamily {
        /// The config's `model_type`.
        found: String,
        /// Those that are known.
        known: Vec<&'static str>,
    },

    /// The checkpoint is of a family that is known, but not to the type that was asked to load it.
    #[error(
        "model_type `{found}` is none of the text models of this type (expected one of: {}): `AnyModel` loads it",
        .known.join(", ")
    )]
    NoTextModel {
        /// The config's `model_type`.
        found: &'static str,
        /// The families of the type.
        known: Vec<&'static str>,
    },

    /// The config does not say what it is the config of.
    #[error("`{}` has neither a `model_type` nor a known class in `architectures`", path.display())]
    NoFamily {
        /// The config.
        path: PathBuf,
    },

    /// The class that the checkpoint was saved from is not known here.
    #[error("unknown architecture `{found}`{} (expected one of: {})", crate::error::did_you_mean(.found, .known), .known.join(", "))]
    UnknownArchitecture {
        /// The first of the config's `architectures`.
        found: String,
        /// Those that are known.
        known: Vec<String>,
    },

    /// The config's two names for what it describes contradict each other.
    #[error("model_type `{model_type}`, but architecture `{architecture}`, which is of another family")]
    OtherFamily {
        /// The config's `model_type`.
        model_type: &'static str,
        /// The first of its `architectures`.
        architecture: String,
    },

    /// The config cannot be read.
    #[error(transparent)]
    Config(#[from] ConfigError),

    /// The weights cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
}

patching_core::__debug_as_display!(AutoError);
