use super::any_tensor::AnyTensor;
use super::captured::{Captured, CapturedTensors, Origin, Raw};
use super::error::CaptureError;
use super::kwargs::Keep;
use burn::tensor::{Tensor, kind::Basic};
use std::any::TypeId;
use std::collections::BTreeMap;
use std::marker::PhantomData;

/// What `forward` of a model returns: a struct with named fields. Derived with `#[derive(ModelOutput)]`.
///
/// A field of type `Captured<…>` is filled by `#[capture_outputs]`; an `Option` may be absent; every other field is
/// an argument of the generated `new`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a model output",
    label = "not a model output",
    note = "write `#[derive(ModelOutput)]` on the struct"
)]
pub trait ModelOutput: Sized + 'static {
    /// The struct's name.
    const NAME: &'static str;
    /// The keys that can be recorded into it: the names of its `Captured` fields.
    const KEYS: &'static [&'static str];

    #[doc(hidden)]
    fn __fields(&self) -> Vec<Field>;
    #[doc(hidden)]
    fn __fill(&mut self, key: &str, raw: Raw) -> Result<(), CaptureError>;
    #[doc(hidden)]
    fn __take(&mut self, key: &str) -> Option<Raw>;
    #[doc(hidden)]
    fn __tie(&mut self, _keep: Keep) {}

    /// The fields that are present, in the reference's order: in the output of a base model, what `forward` returned
    /// comes first and recorded keys follow in the order of their declaration; elsewhere fields come in their own
    /// order.
    fn to_tuple(&self) -> OutputTuple {
        let here = |field: &Field| {
            field.origin.filter(|origin| origin.output == TypeId::of::<Self>()).map(|origin| origin.order)
        };
        let mut fields = self.__fields();
        fields.sort_by_key(here); // stable; `None` comes first
        OutputTuple(fields.into_iter().filter_map(|field| Some((field.name, field.value?))).collect())
    }

    /// Hands every recorded value on to `head`, the output of a model around this one.
    ///
    /// # Errors
    ///
    /// [`CaptureError::NoField`] if `head` has no field for one of them: it would go missing.
    fn pass_on<O: ModelOutput>(&mut self, head: &mut O) -> Result<(), CaptureError> {
        self.pass_on_as("", head)
    }

    /// [`pass_on`](Self::pass_on) for one of several models around which `head` is: what was recorded for `attentions`
    /// goes into the field `decoder_attentions` if `prefix` is `decoder_`. A key whose field is there without the prefix
    /// only, as `cross_attentions` often is, goes there.
    ///
    /// # Errors
    ///
    /// As [`pass_on`](Self::pass_on).
    fn pass_on_as<O: ModelOutput>(&mut self, prefix: &str, head: &mut O) -> Result<(), CaptureError> {
        for key in Self::KEYS {
            let Some(raw) = self.__take(key) else { continue };
            let prefixed = O::KEYS.iter().find(|field| field.strip_prefix(prefix) == Some(key));
            let Some(field) = prefixed.or_else(|| O::KEYS.iter().find(|field| *field == key)) else {
                return Err(CaptureError::NoField {
                    output: O::NAME,
                    key: format!("{prefix}{key}"),
                    fields: O::KEYS.to_vec(),
                });
            };
            head.__fill(field, raw)?;
        }
        Ok(())
    }

    /// The struct, or the tuple of its present fields where `return_dict` is `false`. Nested calls never convert:
    /// only who calls the outermost model decides.
    fn returned(self, return_dict: Option<bool>) -> Returned<Self> {
        if return_dict == Some(false) { Returned::Tuple(self.to_tuple()) } else { Returned::Struct(self) }
    }
}

/// A model's result as the caller wanted it.
#[derive(Clone, Debug)]
pub enum Returned<O> {
    /// The output struct.
    Struct(O),
    /// The fields that are present, in order.
    Tuple(OutputTuple),
}

/// A field of an output, its type erased.
#[doc(hidden)]
pub struct Field {
    name: &'static str,
    value: Option<OutputValue>,
    origin: Option<Origin>,
}

impl Field {
    pub fn new<F: OutputField>(name: &'static str, field: &F) -> Self {
        Self { name, value: field.output_value(), origin: field.__origin() }
    }
}

/// The present fields of an output, in order.
#[derive(Clone, Debug, Default)]
pub struct OutputTuple(Vec<(&'static str, OutputValue)>);

impl OutputTuple {
    /// How many fields are present.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of the fields.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|(name, _)| *name)
    }

    /// The value at `index`.
    pub fn get(&self, index: usize) -> Option<&OutputValue> {
        self.0.get(index).map(|(_, value)| value)
    }

    /// The fields, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &OutputValue)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }
}

/// The value of a present field.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum OutputValue {
    /// A tensor.
    Tensor(AnyTensor),
    /// A recorded sequence.
    Captured(CapturedTensors),
    /// The output of a model inside this one.
    Nested(OutputTuple),
    /// Something that is no tensor, such as a cache; by its type's name.
    Opaque(&'static str),
}

/// A type that a field of an output may have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a model output",
    note = "a field is a tensor, a `Captured<…>`, another output, or an `Option` of those; implement `patching_core::capture::OutputField` for types of your own"
)]
pub trait OutputField {
    /// The field's value; `None` if it is absent.
    fn output_value(&self) -> Option<OutputValue>;

    #[doc(hidden)]
    #[allow(private_interfaces, reason = "only this crate's `Captured` has an origin")]
    fn __origin(&self) -> Option<Origin> {
        None
    }
}

impl<const D: usize, K: Basic + 'static> OutputField for Tensor<D, K>
where
    Tensor<D, K>: Send + Sync,
{
    fn output_value(&self) -> Option<OutputValue> {
        AnyTensor::from_any(self).map(OutputValue::Tensor)
    }
}

impl<F: OutputField> OutputField for Option<F> {
    fn output_value(&self) -> Option<OutputValue> {
        self.as_ref().and_then(F::output_value)
    }
}

impl<F: OutputField> OutputField for Box<F> {
    fn output_value(&self) -> Option<OutputValue> {
        F::output_value(self)
    }
}

impl<T: Clone + Send + Sync + 'static> OutputField for Captured<T> {
    fn output_value(&self) -> Option<OutputValue> {
        self.__erased().map(OutputValue::Captured)
    }
    #[allow(private_interfaces, reason = "only this crate's `Captured` has an origin")]
    fn __origin(&self) -> Option<Origin> {
        self.origin()
    }
}

/// The recorded values of a run that stopped when it had them: no other result exists, so none is in the type.
pub struct Captures<O> {
    values: BTreeMap<&'static str, Raw>,
    output: PhantomData<fn() -> O>,
}

/// The output of [`Captures`] that may be of any model.
#[derive(Clone, Copy, Debug)]
pub enum AnyOutput {}

impl<O> Captures<O> {
    pub(crate) fn new(values: BTreeMap<&'static str, Raw>) -> Self {
        Self { values, output: PhantomData }
    }

    /// The same values, for code that treats every model alike.
    pub fn of_any(self) -> Captures<AnyOutput> {
        Captures::new(self.values)
    }

    /// The keys that were recorded and not yet taken.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.values.keys().copied()
    }

    /// Takes the values recorded for `key`.
    ///
    /// # Errors
    ///
    /// [`CaptureError::NoField`] if the key was not asked for or already taken, [`CaptureError::WrongType`] if its
    /// values are no `T`.
    pub fn take<T: Send + Sync + 'static>(&mut self, key: &str) -> Result<Captured<T>, CaptureError> {
        let raw = self.values.remove(key).ok_or_else(|| CaptureError::NoField {
            output: "Captures",
            key: key.to_owned(),
            fields: self.values.keys().copied().collect(),
        })?;
        let mut captured = Captured::default();
        captured.__fill(key, raw)?;
        Ok(captured)
    }
}
