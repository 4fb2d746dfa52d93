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
}

/// Why named tensors are not the inputs of a model.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InputError {
    /// The model has no such argument.
    #[error("`{model}` takes no `{found}`{}, expected: {}", did_you_mean(.found, .known), .known.join(", "))]
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

    /// An integer beyond what a device computes in.
    #[error("`{name}` holds {found}, which no device computes in")]
    TooLarge {
        /// The argument.
        name: &'static str,
        /// The number.
        found: u64,
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
    /// When there is a tensor that the model does not take, or one of the wrong rank or type.
    pub fn to_text(&self, model: &'static str, device: &Device) -> Result<TextInputs, InputError> {
        self.only(model, Self::TEXT)?;
        Ok(TextInputs {
            input_ids: self.ints("input_ids", "[batch, seq]", device)?,
            attention_mask: self.ints("attention_mask", "[batch, seq]", device)?,
            position_ids: self.ints("position_ids", "[batch or 1, seq]", device)?,
            inputs_embeds: self.floats("inputs_embeds", "[batch, seq, hidden]", device)?,
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
            Some(data) if data.dtype().is_float() => self.floats(NAME, EXPECTED, device)?.map(Labels::Targets),
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
        if found == DType::U64
            && let Some(found) = data.iter::<u64>().find(|value| i64::try_from(*value).is_err())
        {
            return Err(InputError::TooLarge { name, found });
        }
        let values: Vec<i64> = data.iter::<i64>().collect();
        Ok(Some(Tensor::from_data(TensorData::new(values, data.shape().clone()), device)))
    }

    fn floats<const D: usize>(
        &self,
        name: &'static str,
        expected: &'static str,
        device: &Device,
    ) -> Result<Option<Tensor<D>>, InputError> {
        let Some(data) = self.ranked::<D>(name, expected)? else { return Ok(None) };
        if !data.dtype().is_float() {
            return Err(InputError::Dtype { name, found: data.dtype(), expected: "floats" });
        }
        Ok(Some(Tensor::from_data(data.clone(), device)))
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
        assert_eq!(large, "`input_ids` holds 18446744073709551615, which no device computes in");
    }
}
