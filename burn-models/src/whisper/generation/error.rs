use thiserror::Error;

/// Why Whisper does not write down what it was given.
#[derive(Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum SpeechError {
    /// A setting in the generation config's `extra` is not what it should be.
    #[error("`{name}` in the generation config: {problem}")]
    Setting {
        /// The setting, or several where it is not known which.
        name: String,
        /// What is wrong.
        problem: String,
    },

    /// A setting in the model's config is not what it should be.
    #[error("`{name}` in the model's config: {problem}")]
    ModelSetting {
        /// The setting.
        name: &'static str,
        /// What is wrong.
        problem: String,
    },

    /// A setting that would change what is written, and that is not followed here.
    #[error("`{name}` is not supported: take it out of the generation config's `extra` to do without")]
    Unsupported {
        /// The setting.
        name: &'static str,
    },

    /// A language or a task for a model that only writes down English.
    #[error("`{name}` cannot be chosen: the model knows English only (`is_multilingual` in the generation config)")]
    EnglishOnly {
        /// The setting.
        name: &'static str,
    },

    /// The generation config does not say which token stands for something.
    #[error("`{name}` needs `{table}`, which the generation config does not have")]
    NoTable {
        /// The setting that needs it.
        name: &'static str,
        /// The field that is missing.
        table: &'static str,
    },

    /// A language that is not known, or not to this model.
    #[error("unknown language `{found}`{} (expected one of: {})", crate::error::did_you_mean(.found, .known), .known.join(", "))]
    UnknownLanguage {
        /// What was asked for.
        found: String,
        /// What there is.
        known: Vec<String>,
    },

    /// A task that is not known.
    #[error("unknown task `{found}`{} (expected one of: {})", crate::error::did_you_mean(.found, .known), .known.join(", "))]
    UnknownTask {
        /// What was asked for.
        found: String,
        /// What there is.
        known: Vec<String>,
    },

    /// Not one language for each sound.
    #[error("{found} languages for a batch of {batch}, expected one, or one for each")]
    LanguageCount {
        /// How many there are.
        found: usize,
        /// How many sounds there are.
        batch: usize,
    },

    /// Places in `forced_decoder_ids` are left out.
    #[error("`forced_decoder_ids` has no token for place {missing}, but one for place {found}")]
    ForcedPlaces {
        /// The first place without one.
        missing: usize,
        /// The next place with one.
        found: usize,
    },

    /// More frames than the encoder has positions for.
    #[error("{found} frames, of which the model hears {limit} at once: `transcribe` goes through longer ones")]
    TooLong {
        /// How many there are.
        found: usize,
        /// How many there may be.
        limit: usize,
    },

    /// More tokens than the decoder has positions for.
    #[error("a prompt of {prompt} tokens and {new} more, expected at most {limit} together (`max_target_positions`)")]
    TooManyTokens {
        /// How many tokens the prompt has.
        prompt: usize,
        /// How many are to be added.
        new: usize,
        /// How many there may be.
        limit: usize,
    },
}

patching_core::__debug_as_display!(SpeechError);
