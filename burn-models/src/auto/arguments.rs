use super::named::position;
use super::{InputError, NamedInputs};
use crate::{Labels, PixelInputs, Seq2SeqInputs, SpeechInputs, TextImageInputs, TextInputs};
use burn::tensor::{DType, Device, Int, Tensor, TensorData};

/// Inputs of a model that can be put together from tensors with names.
pub trait NamedArguments: Sized {
    /// Takes what there is; names that the model does not know were refused before.
    ///
    /// # Errors
    ///
    /// When a tensor has the wrong rank or type, or a required one is absent.
    fn from_named(arguments: &Arguments<'_>) -> Result<Self, InputError>;
}

/// Named tensors as the arguments of one model on one device.
#[derive(Debug)]
pub struct Arguments<'a> {
    inputs: &'a NamedInputs,
    model: &'static str,
    device: &'a Device,
    /// Whether labels are for who asks.
    labels: bool,
}

impl<'a> Arguments<'a> {
    pub(super) fn new(inputs: &'a NamedInputs, model: &'static str, device: &'a Device) -> Self {
        Self { inputs, model, device, labels: true }
    }

    /// The same without the labels, which are for another part of the model.
    #[must_use]
    pub fn without_labels(&self) -> Self {
        Self { labels: false, ..*self }
    }

    /// The integers called `name`, if they are there; `expected` says what their dimensions are.
    ///
    /// # Errors
    ///
    /// When they are of another rank or no integers, or one does not fit 32 bits.
    pub fn ints<const D: usize>(
        &self,
        name: &'static str,
        expected: &'static str,
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
        Ok(Some(Tensor::from_data(TensorData::new(values, data.shape().clone()), self.device)))
    }

    /// The floats called `name`, if they are there, in the type that the model computes in, if that is
    /// [known](NamedInputs::float_dtype).
    ///
    /// # Errors
    ///
    /// When they are of another rank or no floats.
    pub fn floats<const D: usize>(
        &self,
        name: &'static str,
        expected: &'static str,
    ) -> Result<Option<Tensor<D>>, InputError> {
        self.floats_in(name, expected, self.inputs.float_dtype)
    }

    /// The floats called `name`, without which the model cannot do; see [`floats`](Self::floats).
    ///
    /// # Errors
    ///
    /// Also when they are not there.
    pub fn needed_floats<const D: usize>(
        &self,
        name: &'static str,
        expected: &'static str,
    ) -> Result<Tensor<D>, InputError> {
        self.floats(name, expected)?.ok_or(InputError::Absent { model: self.model, name, expected })
    }

    /// Labels of any of the kinds that there are, told apart by rank and type, or by names of their own.
    ///
    /// # Errors
    ///
    /// When they are of no kind, or one of two that belong together is absent.
    pub fn labels(&self) -> Result<Option<Labels>, InputError> {
        const NAME: &str = "labels";
        const EXPECTED: &str = "[batch, seq], [batch] or [batch, labels]";
        if !self.labels {
            return Ok(None);
        }
        let absent = |name, expected| InputError::Absent { model: self.model, name, expected };
        let row = |name| self.ints::<1>(name, "[batch]");
        match (row("start_positions")?, row("end_positions")?) {
            (Some(start), Some(end)) => return Ok(Some(Labels::Spans { start, end })),
            (Some(_), None) => return Err(absent("end_positions", "[batch]")),
            (None, Some(_)) => return Err(absent("start_positions", "[batch]")),
            (None, None) => {}
        }
        if let Some(classes) = row("next_sentence_label")? {
            let tokens = self.ints(NAME, "[batch, seq]")?.ok_or_else(|| absent(NAME, "[batch, seq]"))?;
            return Ok(Some(Labels::TokensAndClasses { tokens, classes }));
        }
        Ok(match self.inputs.get(NAME) {
            None => None,
            // one number for each sequence is a label of which there is one
            Some(data) if data.dtype().is_float() && data.shape().len() == 1 => {
                let targets = self.floats_in::<1>(NAME, EXPECTED, None)?;
                targets.map(|targets| Labels::Targets(targets.unsqueeze_dim(1)))
            }
            Some(data) if data.dtype().is_float() => self.floats_in(NAME, EXPECTED, None)?.map(Labels::Targets),
            Some(data) if data.shape().len() == 1 => self.ints(NAME, EXPECTED)?.map(Labels::Classes),
            Some(_) => self.ints(NAME, EXPECTED)?.map(Labels::Tokens),
        })
    }

    /// As `dtype`, else as the device's default.
    fn floats_in<const D: usize>(
        &self,
        name: &'static str,
        expected: &'static str,
        dtype: Option<DType>,
    ) -> Result<Option<Tensor<D>>, InputError> {
        let Some(data) = self.ranked::<D>(name, expected)? else { return Ok(None) };
        if !data.dtype().is_float() {
            return Err(InputError::Dtype { name, found: data.dtype(), expected: "floats" });
        }
        Ok(Some(match dtype {
            Some(dtype) => Tensor::from_data(data.clone(), (self.device, dtype)),
            None => Tensor::from_data(data.clone(), self.device),
        }))
    }

    fn ranked<const D: usize>(
        &self,
        name: &'static str,
        expected: &'static str,
    ) -> Result<Option<&'a TensorData>, InputError> {
        match self.inputs.get(name) {
            Some(data) if data.shape().len() != D => {
                Err(InputError::Rank { name, found: data.shape().to_vec(), expected })
            }
            found => Ok(found),
        }
    }
}

impl NamedArguments for TextInputs {
    fn from_named(arguments: &Arguments<'_>) -> Result<Self, InputError> {
        Ok(Self {
            input_ids: arguments.ints("input_ids", "[batch, seq]")?,
            attention_mask: arguments.ints("attention_mask", "[batch, seq]")?,
            token_type_ids: arguments.ints("token_type_ids", "[batch, seq]")?,
            position_ids: arguments.ints("position_ids", "[batch or 1, seq]")?,
            inputs_embeds: arguments.floats("inputs_embeds", "[batch, seq, hidden]")?,
            encoder_hidden_states: arguments.floats("encoder_hidden_states", "[batch, source, hidden]")?,
            encoder_attention_mask: arguments.ints("encoder_attention_mask", "[batch, source]")?,
            labels: arguments.labels()?,
            ..Self::default()
        })
    }
}

impl NamedArguments for PixelInputs {
    fn from_named(arguments: &Arguments<'_>) -> Result<Self, InputError> {
        Ok(Self {
            bool_masked_pos: arguments.ints("bool_masked_pos", "[batch, patches]")?,
            labels: arguments.labels()?,
            ..Self::new(arguments.needed_floats("pixel_values", "[batch, channels, height, width]")?)
        })
    }
}

impl NamedArguments for TextImageInputs {
    fn from_named(arguments: &Arguments<'_>) -> Result<Self, InputError> {
        let image = arguments.floats("pixel_values", "[batch, channels, height, width]")?;
        Ok(Self { text: TextInputs::from_named(arguments)?, image: image.map(PixelInputs::new), return_loss: false })
    }
}

impl NamedArguments for SpeechInputs {
    fn from_named(arguments: &Arguments<'_>) -> Result<Self, InputError> {
        let input_features = arguments.needed_floats("input_features", "[batch, mel bins, frames]")?;
        Ok(Self { labels: arguments.labels()?, ..Self::new(input_features) })
    }
}

impl<S: NamedArguments> NamedArguments for Seq2SeqInputs<S> {
    fn from_named(arguments: &Arguments<'_>) -> Result<Self, InputError> {
        let labels = arguments.labels()?;
        let decoder = TextInputs {
            input_ids: arguments.ints("decoder_input_ids", "[batch, seq]")?,
            attention_mask: arguments.ints("decoder_attention_mask", "[batch, seq]")?,
            position_ids: arguments.ints("decoder_position_ids", "[batch or 1, seq]")?,
            inputs_embeds: arguments.floats("decoder_inputs_embeds", "[batch, seq, hidden]")?,
            labels,
            ..TextInputs::default()
        };
        // the decoder's head is the one that answers
        Ok(Self::new(S::from_named(&arguments.without_labels())?).decoder(decoder))
    }
}
