use thiserror::Error;

/// Why a config cannot be built into a model.
#[derive(Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A number lies outside what can be built.
    #[error("`{field}` is {found}, expected {expected}")]
    OutOfRange {
        /// The field of `config.json`.
        field: &'static str,
        /// Its value.
        found: String,
        /// What it may be.
        expected: String,
    },

    /// One count must be a multiple of another.
    #[error("`{field}` is {found}, expected a multiple of `{divisor_field}`, which is {divisor}")]
    NotAMultiple {
        /// The field of `config.json`.
        field: &'static str,
        /// Its value.
        found: usize,
        /// The field that has to divide it.
        divisor_field: &'static str,
        /// That field's value.
        divisor: usize,
    },

    /// A list has not one entry for each layer.
    #[error("`{field}` has {found} entries, expected one for each of the {expected} layers")]
    WrongLength {
        /// The field of `config.json`.
        field: &'static str,
        /// Its length.
        found: usize,
        /// `num_hidden_layers`.
        expected: usize,
    },

    /// A field is needed for what another one says.
    #[error("`{field}` is missing, which {because} needs")]
    Missing {
        /// The field that is missing.
        field: &'static str,
        /// What needs it.
        because: String,
    },

    /// A flag for a recorded output is neither on, off nor a selection.
    #[error("`output_{key}` is {found}, expected true, false, an index, a list of indices or a range")]
    Flag {
        /// The key.
        key: String,
        /// What the config says.
        found: String,
    },

    /// The kind of rotary position embedding is not known here.
    #[error("unsupported rope_type `{found}`, expected one of: {}", .known.join(", "))]
    UnsupportedRope {
        /// What the config says.
        found: String,
        /// What is supported.
        known: Vec<&'static str>,
    },

    /// All parameters together would be more than any real model has.
    #[error("the sizes ask for {found} parameters, expected at most {limit}")]
    TooLarge {
        /// The number of parameters, saturated.
        found: u64,
        /// The most that is allowed.
        limit: u64,
    },

    /// The experts implementation is not registered.
    #[error("unknown experts_implementation `{name}`{} (expected one of: {})", crate::error::did_you_mean(.name, .known), .known.join(", "))]
    UnknownExperts {
        /// What was asked for.
        name: String,
        /// What is registered.
        known: Vec<String>,
    },

    /// An implementation of experts was chosen where there are none.
    #[error("experts_implementation `{name}` was chosen, but no layer of this `{model_type}` model has experts")]
    NoExperts {
        /// What was asked for.
        name: String,
        /// The family.
        model_type: String,
    },

    /// The attention implementation is not registered.
    #[error("unknown attn_implementation `{name}`{} (expected one of: {})", crate::error::did_you_mean(.name, .known), .known.join(", "))]
    UnknownAttention {
        /// What was asked for.
        name: String,
        /// What is registered.
        known: Vec<String>,
    },
}

patching_core::__debug_as_display!(ConfigError);

impl ConfigError {
    pub(crate) fn out_of_range(field: &'static str, found: impl ToString, expected: impl Into<String>) -> Self {
        Self::OutOfRange { field, found: found.to_string(), expected: expected.into() }
    }
}
