use super::{Arguments, NamedArguments};
use crate::error::did_you_mean;
use burn::tensor::{DType, Device, TensorData};
use std::collections::BTreeMap;
use thiserror::Error;

/// Inputs by the names that the arguments of `forward` have in the reference, as read from a file.
///
/// ```
/// use burn::tensor::TensorData;
/// use burn_models::auto::NamedInputs;
/// let inputs = NamedInputs::new().with("input_ids", TensorData::from([[1_i64, 2, 3]]));
/// assert_eq!(inputs.names().collect::<Vec<_>>(), ["input_ids"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct NamedInputs {
    tensors: BTreeMap<String, TensorData>,
    vocab_size: Option<usize>,
    pub(super) float_dtype: Option<DType>,
}

/// Why named tensors are not the inputs of a model.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InputError {
    /// The model has no such argument.
    #[error("`{model}` takes no `{found}`{} (expected one of: {})", did_you_mean(.found, .known), .known.join(", "))]
    UnknownName {
        /// The model's class.
        model: &'static str,
        /// The tensor's name.
        found: String,
        /// The arguments that there are.
        known: &'static [&'static str],
    },

    /// A tensor that the model cannot do without is not there.
    #[error("`{model}` needs `{name}`, {expected}")]
    Absent {
        /// The model's class.
        model: &'static str,
        /// The argument.
        name: &'static str,
        /// What its dimensions are.
        expected: &'static str,
    },

    /// A tensor has the wrong number of dimensions.
    #[error("`{name}` has shape {found:?}, expected {expected}")]
    Rank {
        /// The argument.
        name: &'static str,
        /// The tensor's shape.
        found: Vec<usize>,
        /// What the dimensions should be.
        expected: &'static str,
    },

    /// A tensor has elements of the wrong type.
    #[error("`{name}` holds {found:?}, expected {expected}")]
    Dtype {
        /// The argument.
        name: &'static str,
        /// The type of its elements.
        found: DType,
        /// What was expected.
        expected: &'static str,
    },

    /// An integer that does not fit into what every device computes in.
    #[error("`{name}` holds {found} at {position:?}, expected integers of 32 bits")]
    TooLarge {
        /// The argument.
        name: &'static str,
        /// The number.
        found: i128,
        /// Where it is, an index for each dimension.
        position: Vec<usize>,
    },

    /// A token that the vocabulary does not have.
    #[error("`{name}` holds {found} at {position:?}, expected ids below {vocab_size}, the size of the vocabulary")]
    OutOfVocabulary {
        /// The argument.
        name: &'static str,
        /// The id.
        found: i64,
        /// Where it is, an index for each dimension.
        position: Vec<usize>,
        /// How many ids there are.
        vocab_size: usize,
    },
}

impl NamedInputs {
    /// The arguments of a decoder of text with a head.
    pub const TEXT: &'static [&'static str] =
        &["input_ids", "attention_mask", "position_ids", "inputs_embeds", "labels"];

    /// The arguments of a decoder of text without a head.
    pub const TEXT_BASE: &'static [&'static str] = &["input_ids", "attention_mask", "position_ids", "inputs_embeds"];

    /// The arguments of a model of text with a head that knows token types and may look at what an encoder gave.
    pub const TEXT_WITH_TYPES: &'static [&'static str] = &[
        "input_ids",
        "attention_mask",
        "token_type_ids",
        "position_ids",
        "inputs_embeds",
        "encoder_hidden_states",
        "encoder_attention_mask",
        "labels",
    ];

    /// The same without a head.
    pub const TEXT_WITH_TYPES_BASE: &'static [&'static str] = &[
        "input_ids",
        "attention_mask",
        "token_type_ids",
        "position_ids",
        "inputs_embeds",
        "encoder_hidden_states",
        "encoder_attention_mask",
    ];

    /// The arguments of a classifier of text that knows token types.
    pub const TEXT_CLASSIFIED: &'static [&'static str] =
        &["input_ids", "attention_mask", "token_type_ids", "position_ids", "inputs_embeds", "labels"];

    /// The arguments of a model that marks answers in texts.
    pub const TEXT_WITH_ANSWERS: &'static [&'static str] = &[
        "input_ids",
        "attention_mask",
        "token_type_ids",
        "position_ids",
        "inputs_embeds",
        "start_positions",
        "end_positions",
    ];

    /// The arguments of a model that is trained on tokens and on whether texts follow each other.
    pub const TEXT_PAIRS: &'static [&'static str] = &[
        "input_ids",
        "attention_mask",
        "token_type_ids",
        "position_ids",
        "inputs_embeds",
        "labels",
        "next_sentence_label",
    ];

    /// The arguments of a model of images without a head.
    pub const PIXELS_BASE: &'static [&'static str] = &["pixel_values", "bool_masked_pos"];

    /// The arguments of a model of images with a head.
    pub const PIXELS: &'static [&'static str] = &["pixel_values", "bool_masked_pos", "labels"];

    /// The arguments of a model of texts and images.
    pub const TEXT_AND_PIXELS: &'static [&'static str] =
        &["input_ids", "attention_mask", "position_ids", "pixel_values"];

    /// The arguments of an encoder and a decoder of text, with a head.
    pub const TEXT_TO_TEXT: &'static [&'static str] = &[
        "input_ids",
        "attention_mask",
        "inputs_embeds",
        "decoder_input_ids",
        "decoder_attention_mask",
        "decoder_inputs_embeds",
        "labels",
    ];

    /// The same without a head.
    pub const TEXT_TO_TEXT_BASE: &'static [&'static str] = &[
        "input_ids",
        "attention_mask",
        "inputs_embeds",
        "decoder_input_ids",
        "decoder_attention_mask",
        "decoder_inputs_embeds",
    ];

    /// The arguments of an encoder of speech and a decoder of text, with a head.
    pub const SPEECH_TO_TEXT: &'static [&'static str] = &[
        "input_features",
        "decoder_input_ids",
        "decoder_attention_mask",
        "decoder_inputs_embeds",
        "decoder_position_ids",
        "labels",
    ];

    /// The same without a head.
    pub const SPEECH_TO_TEXT_BASE: &'static [&'static str] = &[
        "input_features",
        "decoder_input_ids",
        "decoder_attention_mask",
        "decoder_inputs_embeds",
        "decoder_position_ids",
    ];

    /// No inputs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tensor; one of the same name is replaced.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, tensor: TensorData) -> Self {
        self.tensors.insert(name.into(), tensor);
        self
    }

    /// Leaves out the tensor called `name`.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.tensors.remove(name);
        self
    }

    /// Makes ids outside a vocabulary of `size` an error of [`to`](Self::to). Without it, only models on
    /// devices in the program's own memory refuse them: elsewhere an id outside gives the row of another.
    #[must_use]
    pub fn vocab_size(mut self, size: usize) -> Self {
        self.vocab_size = Some(size);
        self
    }

    /// The float type that the model computes in, in which [`to`](Self::to) makes embeddings, pixels and features; without
    /// it, that is the device's default.
    #[must_use]
    pub fn float_dtype(mut self, dtype: DType) -> Self {
        self.float_dtype = Some(dtype);
        self
    }

    /// The tensor called `name`.
    pub fn get(&self, name: &str) -> Option<&TensorData> {
        self.tensors.get(name)
    }

    /// The names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// The tensors by name, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &TensorData)> {
        self.tensors.iter().map(|(name, tensor)| (name.as_str(), tensor))
    }

    /// The inputs of the model called `model`, which takes the arguments `known`, on `device`.
    ///
    /// # Errors
    ///
    /// When there is a tensor that the model does not take, or one of the wrong rank or type, or a required one is
    /// absent; an integer beyond 32 bits; an id outside the vocabulary, if that is [known](Self::vocab_size).
    pub fn to<I: NamedArguments>(
        &self,
        model: &'static str,
        known: &'static [&'static str],
        device: &Device,
    ) -> Result<I, InputError> {
        self.only(model, known)?;
        self.check_vocabulary("input_ids")?;
        self.check_vocabulary("decoder_input_ids")?;
        I::from_named(&Arguments::new(self, model, device))
    }

    fn only(&self, model: &'static str, known: &'static [&'static str]) -> Result<(), InputError> {
        match self.names().find(|name| !known.contains(name)) {
            Some(found) => Err(InputError::UnknownName { model, found: found.to_owned(), known }),
            None => Ok(()),
        }
    }

    /// Whether the ids lie in the vocabulary. Of another type, or too wide, they are an error elsewhere.
    fn check_vocabulary(&self, name: &'static str) -> Result<(), InputError> {
        let (Some(data), Some(vocab_size)) = (self.get(name), self.vocab_size) else { return Ok(()) };
        let is_narrow = data.dtype().is_int() || (data.dtype().is_uint() && data.dtype() != DType::U64);
        if !is_narrow {
            return Ok(());
        }
        let is_outside = |id: i64| !usize::try_from(id).is_ok_and(|id| id < vocab_size);
        match data.iter::<i64>().enumerate().find(|(_, id)| is_outside(*id)) {
            Some((at, found)) => {
                Err(InputError::OutOfVocabulary { name, found, position: position(at, data.shape()), vocab_size })
            }
            None => Ok(()),
        }
    }
}

/// The indices of the element `at` of all elements in order.
pub(super) fn position(at: usize, shape: &[usize]) -> Vec<usize> {
    let mut rest = at;
    let mut position: Vec<usize> = shape
        .iter()
        .rev()
        .map(|size| {
            let index = rest % (*size).max(1);
            rest /= (*size).max(1);
            index
        })
        .collect();
    position.reverse();
    position
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::{Labels, TextInputs};

    fn to_text(name: &str, data: TensorData) -> Result<TextInputs, String> {
        text(&NamedInputs::new().with(name, data)).map_err(|error| error.to_string())
    }

    fn text(inputs: &NamedInputs) -> Result<TextInputs, InputError> {
        inputs.to("AModel", NamedInputs::TEXT, &Device::flex())
    }

    #[test]
    fn integers_of_any_width() {
        let all = [
            TensorData::from([[1_u8, 2]]),
            TensorData::from([[1_i32, 2]]),
            TensorData::from([[1_u64, 2]]),
            TensorData::from([[true, true]]),
        ];
        for data in all {
            let mask = to_text("attention_mask", data).expect("integers").attention_mask.expect("given");
            assert_eq!(mask.dims(), [1, 2]);
        }
    }

    #[test]
    fn labels_are_told_apart() {
        let labels = |data| to_text("labels", data).map(|inputs| inputs.labels);
        assert!(matches!(labels(TensorData::from([1_i64])), Ok(Some(Labels::Classes(_)))));
        assert!(matches!(labels(TensorData::from([[1_i64]])), Ok(Some(Labels::Tokens(_)))));
        assert!(matches!(labels(TensorData::from([[1.0_f32]])), Ok(Some(Labels::Targets(_)))));
        let Ok(Some(Labels::Targets(of_one))) = labels(TensorData::from([1.0_f32, 2.0])) else { panic!("targets") };
        assert_eq!(of_one.dims(), [2, 1]);
        assert!(labels(TensorData::from([[[1.0_f32]]])).is_err());
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let error = |name, data| to_text(name, data).expect_err("does not fit");
        let found = error("input_idss", TensorData::from([[1_i64]]));
        assert!(found.contains("did you mean `input_ids`?"), "{found}");
        assert_eq!(error("input_ids", TensorData::from([1_i64])), "`input_ids` has shape [1], expected [batch, seq]");
        assert_eq!(error("input_ids", TensorData::from([[1.0_f32]])), "`input_ids` holds F32, expected integers");
        let large = error("input_ids", TensorData::from([[u64::MAX]]));
        assert_eq!(large, "`input_ids` holds 18446744073709551615 at [0, 0], expected integers of 32 bits");
        let large = error("input_ids", TensorData::from([[0, 1, 2], [3, 1_i64 << 32, 5]]));
        assert_eq!(large, "`input_ids` holds 4294967296 at [1, 1], expected integers of 32 bits");
    }

    #[test]
    fn ids_lie_in_the_vocabulary() {
        let inputs = |ids| text(&NamedInputs::new().with("input_ids", ids).vocab_size(10));
        assert!(inputs(TensorData::from([[0_i64, 9]])).is_ok());
        for (ids, found, position) in [
            (TensorData::from([[0_i64, 9], [10, 11]]), 10, [1, 0]),
            (TensorData::from([[0_u8, 200]]), 200, [0, 1]),
            (TensorData::from([[-1_i32]]), -1, [0, 0]),
        ] {
            let position = position.to_vec();
            let expected = InputError::OutOfVocabulary { name: "input_ids", found, position, vocab_size: 10 };
            assert_eq!(inputs(ids).map(drop), Err(expected));
        }
    }

    #[test]
    fn embeddings_are_in_the_type_of_the_model() {
        let data = TensorData::from([[[1.5_f32, 2.0]]]);
        let inputs = NamedInputs::new().with("inputs_embeds", data).float_dtype(DType::BF16);
        let embeds = text(&inputs).map(|inputs| inputs.inputs_embeds);
        let embeds = embeds.expect("fits").expect("given");
        assert_eq!(embeds.dtype(), DType::BF16);
        assert_eq!(embeds.to_data().iter::<f32>().collect::<Vec<_>>(), [1.5, 2.0]);
    }
}
