use crate::config::ConfigError;
use burn::tensor::DType;
use thiserror::Error;

/// Why a `forward` did not give a result.
#[derive(Error)]
#[non_exhaustive]
pub enum ForwardError {
    /// What was asked to be recorded cannot be.
    #[error(transparent)]
    Capture(#[from] patching_core::capture::CaptureError),

    /// The config does not describe a model that can run.
    #[error(transparent)]
    Config(#[from] ConfigError),

    /// The experts that a call was to be forced to cannot be used.
    #[error(transparent)]
    Routing(#[from] crate::routing::RoutingError),

    /// Neither token ids nor embeddings, or both.
    #[error("exactly one of `input_ids` and `inputs_embeds` is expected, found {found}")]
    Inputs {
        /// `neither` or `both`.
        found: &'static str,
    },

    /// An argument that this model has no use for.
    #[error("`{model}` takes no `{name}`{because}")]
    Unused {
        /// The model's `model_type`.
        model: String,
        /// The argument.
        name: &'static str,
        /// Why, beginning with a colon, or nothing.
        because: &'static str,
    },

    /// An argument that this model cannot do without.
    #[error("`{model}` needs `{name}`{because}")]
    Absent {
        /// The model's `model_type`.
        model: String,
        /// The argument.
        name: &'static str,
        /// Why, beginning with a colon, or nothing.
        because: &'static str,
    },

    /// A tensor's shape does not fit.
    #[error("`{name}` has shape {found:?}, expected {expected}")]
    Shape {
        /// The argument.
        name: &'static str,
        /// Its shape.
        found: Vec<usize>,
        /// The shape that fits.
        expected: String,
    },

    /// A token id is not in the vocabulary, or an index not among what it chooses from.
    #[error("`{name}` holds {found}, expected 0 to {}", .limit.saturating_sub(1))]
    IndexOutOfRange {
        /// The argument.
        name: &'static str,
        /// The index.
        found: i64,
        /// How many there are to choose from.
        limit: usize,
    },

    /// The sequences are longer than the model has positions.
    #[error(
        "the sequences have {found} tokens with those seen before, expected at most {limit}, the model's positions"
    )]
    TooLong {
        /// The tokens of each sequence.
        found: usize,
        /// The positions.
        limit: usize,
    },

    /// A tensor's element type is not the model's.
    #[error("`{name}` is {found:?}, expected {expected:?} as the model's weights")]
    DType {
        /// The argument.
        name: &'static str,
        /// Its element type.
        found: DType,
        /// That of the weights.
        expected: DType,
    },

    /// The cache belongs to another model or another batch.
    #[error("the cache has {found} {what}, expected {expected}")]
    Cache {
        /// What was compared.
        what: &'static str,
        /// The cache's.
        found: String,
        /// What fits.
        expected: String,
    },

    /// The layers of a cache have seen different numbers of tokens, so a forward pass did not go through all of them.
    #[error("the cache is inconsistent: layer {layer} has seen {found} tokens, layer 0 has seen {expected}")]
    CacheInconsistent {
        /// The layer that differs.
        layer: usize,
        /// What it has seen.
        found: usize,
        /// What layer 0 has seen.
        expected: usize,
    },

    /// Sequences of a batch cannot be told from their padding.
    #[error("a batch of {batch} needs `pad_token_id` in the config to find the last token of each sequence")]
    NoPadToken {
        /// The number of sequences.
        batch: usize,
    },

    /// Sequences of a batch do not end alike, so that what stands for each cannot be found.
    #[error(
        "the sequences hold the token {end}, which ends a text, {found:?} times, expected equally often and at least once"
    )]
    Ends {
        /// The token that ends a text.
        end: i64,
        /// How often each sequence has it.
        found: Vec<i64>,
    },

    /// A text has not one token for each feature of its images.
    #[error("the texts have {tokens} image tokens, expected {features}: one for each feature of the images")]
    ImageTokens {
        /// How many tokens stand for images.
        tokens: usize,
        /// How many features the images have.
        features: usize,
    },

    /// The labels are of a kind that the head cannot use.
    #[error("labels are {found}, expected {expected}")]
    Labels {
        /// What was given.
        found: String,
        /// What the head needs.
        expected: String,
    },

    /// Values could not be read back from the device.
    #[error("cannot read `{name}` back from the device: {problem}")]
    Read {
        /// The tensor.
        name: &'static str,
        /// What the device says.
        problem: String,
    },
}

patching_core::__debug_as_display!(ForwardError);

impl ForwardError {
    /// The same error with the names that a decoder's arguments have beside those of an encoder.
    pub(crate) fn of_decoder(self) -> Self {
        let named = |name: &'static str| match name {
            "input_ids" => "decoder_input_ids",
            "inputs_embeds" => "decoder_inputs_embeds",
            "attention_mask" => "decoder_attention_mask",
            "position_ids" => "decoder_position_ids",
            other => other,
        };
        match self {
            Self::Shape { name, found, expected } => Self::Shape { name: named(name), found, expected },
            Self::IndexOutOfRange { name, found, limit } => Self::IndexOutOfRange { name: named(name), found, limit },
            Self::DType { name, found, expected } => Self::DType { name: named(name), found, expected },
            Self::Unused { model, name, because } => Self::Unused { model, name: named(name), because },
            other => other,
        }
    }
}

/// `, did you mean …?` for the nearest of `known` to a name that was not found, or nothing.
///
/// A question ends a sentence, so that what may follow in a message belongs into parentheses.
pub fn did_you_mean(name: &str, known: &[impl AsRef<str>]) -> String {
    known
        .iter()
        .map(|other| (strsim::jaro_winkler(name, other.as_ref()), other.as_ref()))
        .filter(|(score, _)| *score > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, near)| format!(", did you mean `{near}`?"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crate::auto::{AutoError, InputError};
    use crate::config::ConfigError;

    /// The messages of everything that is looked up by name, for a name that is near to `eager` and for one that is not.
    fn messages(name: &str) -> Vec<String> {
        let (found, known) = (name.to_owned(), || vec!["eager".to_owned(), "sdpa".to_owned()]);
        vec![
            ConfigError::UnknownExperts { name: found.clone(), known: known() }.to_string(),
            ConfigError::UnknownAttention { name: found.clone(), known: known() }.to_string(),
            AutoError::UnknownFamily { found: found.clone(), known: vec!["eager", "sdpa"] }.to_string(),
            AutoError::UnknownArchitecture { found: found.clone(), known: known() }.to_string(),
            InputError::UnknownName { model: "AModel", found, known: &["eager", "sdpa"] }.to_string(),
        ]
    }

    #[test]
    fn names_that_are_not_found_read_well() {
        for message in messages("eagre") {
            assert!(message.ends_with(" `eagre`, did you mean `eager`? (expected one of: eager, sdpa)"), "{message}");
        }
        for message in messages("zz") {
            assert!(message.ends_with(" `zz` (expected one of: eager, sdpa)"), "{message}");
        }
    }
}
