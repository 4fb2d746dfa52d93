use crate::error::did_you_mean;
use crate::{Labels, TextInputs};
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
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
    float_dtype: Option<DType>,
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
    /// The arguments of a text model.
    pub const TEXT: &'static [&'static str] =
        &["input_ids", "attention_mask", "position_ids", "inputs_embeds", "labels"];

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

    /// Makes ids outside a vocabulary of `size` an error of [`to_text`](Self::to_text). Without it, only models on
    /// devices in the program's own memory refuse them: elsewhere an id outside gives the row of another.
    #[must_use]
    pub fn vocab_size(mut self, size: usize) -> Self {
        self.vocab_size = Some(size);
        self
    }

    /// The float type that the model computes in, in which [`to_text`](Self::to_text) makes `inputs_embeds`; without
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

    /// The inputs of the text model `model`, on `device`.
    ///
    /// # Errors
    ///
    /// When there is a tensor that the model does not take, or one of the wrong rank or type; an integer beyond 32
    /// bits; an id outside the vocabulary, if that is [known](Self::vocab_size).
    pub fn to_text(&self, model: &'static str, device: &Device) -> Result<TextInputs, InputError> {
        self.only(model, Self::TEXT)?;
        self.check_vocabulary("input_ids")?;
        Ok(TextInputs {
            input_ids: self.ints("input_ids", "[batch, seq]", device)?,
            attention_mask: self.ints("attention_mask", "[batch, seq]", device)?,
            position_ids: self.ints("position_ids", "[batch or 1, seq]", device)?,
            inputs_embeds: self.floats("inputs_embeds", "[batch, seq, hidden]", self.float_dtype, device)?,
            labels: self.labels(device)?,
            ..TextInputs::default()
        })
    }

    /// Labels of any of the kinds that there are, told apart by rank and type.
    fn labels(&self, device: &Device) -> Result<Option<Labels>, InputError> {
        const NAME: &str = "labels";
        const EXPECTED: &str = "[batch, seq], [batch] or [batch, labels]";
        Ok(match self.get(NAME) {
            None => None,
            Some(data) if data.dtype().is_float() => self.floats(NAME, EXPECTED, None, device)?.map(Labels::Targets),
            Some(data) if data.shape().len() == 1 => self.ints(NAME, EXPECTED, device)?.map(Labels::Classes),
            Some(_) => self.ints(NAME, EXPECTED, device)?.map(Labels::Tokens),
        })
    }

    fn only(&self, model: &'static str, known: &'static [&'static str]) -> Result<(), InputError> {
        match self.names().find(|name| !known.contains(name)) {
            Some(found) => Err(InputError::UnknownName { model, found: found.to_owned(), known }),
            None => Ok(()),
        }
    }

    fn ints<const D: usize>(
        &self,
        name: &'static str,
        expected: &'static str,
        device: &Device,
    ) -> Result<Option<Tensor<D, Int>>, InputError> {
        let Some(data) = self.ranked::<D>(name, expected)? else { return Ok(None) };
        let found = data.dtype();
        if !(found.is_int() || found.is_uint() || found.is_bool()) {
            return Err(InputError::Dtype { name, found, expected: "integers" });
        }
        // Some devices compute in no wider integers, and would wrap around.
        let fits = |value: i128| i32::try_from(value).is_ok();
        let wide = match found {
            DType::U64 => data.iter::<u64>().map(i128::from).enumerate().find(|(_, value)| !fits(*value)),
            _ => data.iter::<i64>().map(i128::from).enumerate().find(|(_, value)| !fits(*value)),
        };
        if let Some((at, found)) = wide {
            return Err(InputError::TooLarge { name, found, position: position(at, data.shape()) });
        }
        let values: Vec<i64> = data.iter::<i64>().collect();
        Ok(Some(Tensor::from_data(TensorData::new(values, data.shape().clone()), device)))
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

    /// As `dtype`, else as the device's default.
    fn floats<const D: usize>(
        &self,
        name: &'static str,
        expected: &'static str,
        dtype: Option<DType>,
        device: &Device,
    ) -> Result<Option<Tensor<D>>, InputError> {
        let Some(data) = self.ranked::<D>(name, expected)? else { return Ok(None) };
        if !data.dtype().is_float() {
            return Err(InputError::Dtype { name, found: data.dtype(), expected: "floats" });
        }
        Ok(Some(match dtype {
            Some(dtype) => Tensor::from_data(data.clone(), (device, dtype)),
            None => Tensor::from_data(data.clone(), device),
        }))
    }

    fn ranked<const D: usize>(
        &self,
        name: &'static str,
        expected: &'static str,
    ) -> Result<Option<&TensorData>, InputError> {
        match self.get(name) {
            Some(data) if data.shape().len() != D => {
                Err(InputError::Rank { name, found: data.shape().to_vec(), expected })
            }
            found => Ok(found),
        }
    }
}

/// The indices of the element `at` of all elements in order.
fn position(at: usize, shape: &[usize]) -> Vec<usize> {
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

    fn to_text(name: &str, data: TensorData) -> Result<TextInputs, String> {
        NamedInputs::new().with(name, data).to_text("AModel", &Device::flex()).map_err(|error| error.to_string())
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
        let inputs = |ids| NamedInputs::new().with("input_ids", ids).vocab_size(10).to_text("AModel", &Device::flex());
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
        let embeds = inputs.to_text("AModel", &Device::flex()).map(|inputs| inputs.inputs_embeds);
        let embeds = embeds.expect("fits").expect("given");
        assert_eq!(embeds.dtype(), DType::BF16);
        assert_eq!(embeds.to_data().iter::<f32>().collect::<Vec<_>>(), [1.5, 2.0]);
    }
}
