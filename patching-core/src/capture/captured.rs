use super::any_tensor::AnyTensor;
use super::element::{Element, Value};
use super::error::CaptureError;
use super::kwargs::Keep;
use super::selection::position;
use std::any::{Any, TypeId, type_name};
use std::sync::Arc;

/// What was recorded for one key, each value at the position of its layer.
///
/// Positions that were not selected are remembered, not filled: [`len`](Self::len) counts them,
/// [`get`](Self::get) and [`iter`](Self::iter) know what is there.
#[derive(Clone, Debug)]
pub struct Captured<T> {
    /// `None`: the key was not asked for.
    len: Option<usize>,
    /// Ascending by position.
    entries: Vec<Entry<T>>,
    origin: Option<Origin>,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry<T> {
    pub(crate) position: usize,
    pub(crate) path: Arc<str>,
    pub(crate) value: T,
}

/// Which output a sequence was recorded into, and as the how manieth: a base model's tuple has recorded keys in the
/// order of declaration, a head's in the order of its fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) output: TypeId,
    pub(crate) order: usize,
}

impl<T> Default for Captured<T> {
    fn default() -> Self {
        Self { len: None, entries: Vec::new(), origin: None }
    }
}

impl<T> Captured<T> {
    /// How many values the model produced, kept or not; 0 if the key was not asked for.
    pub fn len(&self) -> usize {
        self.len.unwrap_or(0)
    }

    /// Whether there is no position at all: the key was not asked for.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the key was asked for.
    pub fn is_recorded(&self) -> bool {
        self.len.is_some()
    }

    /// The value at `position`, counted from 0, if it was kept.
    pub fn get(&self, position: usize) -> Option<&T> {
        let at = self.entries.binary_search_by_key(&position, |entry| entry.position).ok()?;
        self.entries.get(at).map(|entry| &entry.value)
    }

    /// The value at `index`, counted from the end where it is negative.
    ///
    /// # Errors
    ///
    /// [`CaptureError::NotPresent`] if there is no such position or it was not selected.
    pub fn at(&self, index: isize) -> Result<&T, CaptureError> {
        position(index, self.len()).and_then(|position| self.get(position)).ok_or_else(|| CaptureError::NotPresent {
            index,
            len: self.len(),
            present: self.entries.iter().map(|entry| entry.position).collect(),
        })
    }

    /// The last value that was kept.
    pub fn last(&self) -> Option<&T> {
        self.entries.last().map(|entry| &entry.value)
    }

    /// What is present: position, path of the module, value. The path of an initial hidden state is that of the
    /// layer whose input it is, followed by ` (input)`.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (usize, &str, &T)> + DoubleEndedIterator {
        self.entries.iter().map(|entry| (entry.position, &*entry.path, &entry.value))
    }

    /// The values that are present, by themselves.
    pub fn into_values(self) -> Vec<T> {
        self.entries.into_iter().map(|entry| entry.value).collect()
    }

    /// Drops the values at the positions for which `is_wanted` is false; the length stays.
    pub fn retain(&mut self, mut is_wanted: impl FnMut(usize) -> bool) {
        self.entries.retain(|entry| is_wanted(entry.position));
    }

    pub(crate) fn origin(&self) -> Option<Origin> {
        self.origin
    }
}

impl<T: Element<Value = T>> Captured<T> {
    /// The sequence as a request with `keep` would have kept it: for values that were computed with before they are
    /// handed to the caller.
    #[must_use]
    pub fn kept(self, keep: Keep) -> Self {
        let keep = |entry: Entry<T>| Some(Entry { value: entry.value.value(keep)?, ..entry });
        Self { entries: self.entries.into_iter().filter_map(keep).collect(), ..self }
    }
}

/// Recorded values whose type their field will say.
#[doc(hidden)]
#[derive(Default)]
pub struct Raw {
    pub(crate) len: usize,
    pub(crate) entries: Vec<Entry<Value>>,
    pub(crate) origin: Option<Origin>,
}

impl<T: Send + Sync + 'static> Captured<T> {
    #[doc(hidden)]
    pub fn __fill(&mut self, key: &str, raw: Raw) -> Result<(), CaptureError> {
        let wrong = |path: &str| CaptureError::WrongType {
            key: key.to_owned(),
            path: path.to_owned(),
            expected: type_name::<T>(),
        };
        self.entries = raw
            .entries
            .into_iter()
            .map(|Entry { position, path, value }| match value.downcast::<T>() {
                Ok(value) => Ok(Entry { position, path, value: *value }),
                Err(_) => Err(wrong(&path)),
            })
            .collect::<Result<_, _>>()?;
        self.len = Some(raw.len);
        self.origin = raw.origin;
        Ok(())
    }

    #[doc(hidden)]
    pub fn __take(&mut self) -> Option<Raw> {
        let Self { len, entries, origin } = std::mem::take(self);
        let entries = entries
            .into_iter()
            .map(|Entry { position, path, value }| Entry { position, path, value: Box::new(value) as Value })
            .collect();
        Some(Raw { len: len?, entries, origin })
    }

    /// The last value becomes `last`, if it was kept.
    #[doc(hidden)]
    pub fn __tie(&mut self, last: &dyn Any)
    where
        T: Clone,
    {
        let len = self.len();
        if let (Some(last), Some(entry)) = (last.downcast_ref::<T>(), self.entries.last_mut())
            && entry.position + 1 == len
        {
            entry.value = last.clone();
        }
    }

    /// The sequence with the type of its tensors erased; `None` if the key was not asked for.
    #[doc(hidden)]
    pub fn __erased(&self) -> Option<CapturedTensors>
    where
        T: Clone,
    {
        let entries = self
            .entries
            .iter()
            .filter_map(|entry| Some((entry.position, entry.path.clone(), AnyTensor::from_any(&entry.value)?)))
            .collect();
        Some(CapturedTensors { len: self.len?, entries })
    }
}

/// A recorded sequence with the type of its tensors erased, for code that treats every output alike.
#[derive(Clone, Debug)]
pub struct CapturedTensors {
    len: usize,
    entries: Vec<(usize, Arc<str>, AnyTensor)>,
}

impl CapturedTensors {
    /// How many values the model produced, kept or not.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no position at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What is present: position, path of the module, tensor.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (usize, &str, &AnyTensor)> {
        self.entries.iter().map(|(position, path, tensor)| (*position, &**path, tensor))
    }
}
