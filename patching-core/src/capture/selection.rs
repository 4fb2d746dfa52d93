use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::ser::{SerializeSeq, Serializer};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};
use std::str::FromStr;

/// What a caller or a config says about one key: nothing, off, on, or which of its values to keep.
///
/// Made from a `bool`, an index, an array or vector of indices, a range, or an `Option` of those. A negative index
/// counts from the end of what the model produces.
///
/// ```
/// use patching_core::capture::Flag;
/// assert_eq!(Flag::from(true), Flag::On);
/// assert_eq!(Flag::from(None::<bool>), Flag::Unset);
/// assert_eq!("0,-1".parse::<Flag>(), Ok(Flag::from([0, -1])));
/// assert_eq!("2..".parse::<Flag>(), Ok(Flag::from(2..)));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Flag {
    /// Nothing was said: the config decides, then off.
    #[default]
    Unset,
    /// Not recorded.
    Off,
    /// Every value is recorded.
    On,
    /// These values are recorded; the others are dropped as soon as they exist.
    Select(Selection),
}

impl Flag {
    /// Whether anything is to be recorded.
    pub fn is_asked(&self) -> bool {
        matches!(self, Self::On | Self::Select(_))
    }
}

/// Which positions of a recorded sequence are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection(Vec<Pick>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pick {
    Index(isize),
    /// From `start` up to, but without, `end`; no end: to the last.
    Span {
        start: isize,
        end: Option<isize>,
    },
}

/// A selection that a sequence of a given length cannot satisfy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    OutOfRange(isize),
    Empty,
}

/// `index` as a position in a sequence of `len`; a negative one counts from the end.
pub(crate) fn position(index: isize, len: usize) -> Option<usize> {
    if index < 0 { len.checked_add_signed(index) } else { usize::try_from(index).ok().filter(|at| *at < len) }
}

impl Selection {
    /// The positions meant in a sequence of `len`, ascending, each once.
    pub(crate) fn resolve(&self, len: usize) -> Result<Vec<usize>, Misfit> {
        let mut positions = Vec::new();
        for pick in &self.0 {
            match *pick {
                Pick::Index(index) => positions.push(position(index, len).ok_or(Misfit::OutOfRange(index))?),
                Pick::Span { start, end } => {
                    // an end may be one past the last
                    let bound = |index: isize| {
                        position(index, len + 1 - usize::from(index < 0)).ok_or(Misfit::OutOfRange(index))
                    };
                    positions.extend(bound(start)?..end.map_or(Ok(len), bound)?);
                }
            }
        }
        positions.sort_unstable();
        positions.dedup();
        if positions.is_empty() { Err(Misfit::Empty) } else { Ok(positions) }
    }

    /// How many of the last values may turn out to be meant when the length is not what was expected:
    /// `None` if that depends on nothing but the position itself.
    pub(crate) fn tail(&self) -> Option<usize> {
        self.0
            .iter()
            .filter_map(|pick| match *pick {
                Pick::Index(index) | Pick::Span { start: index, .. } if index < 0 => Some(index.unsigned_abs()),
                Pick::Span { end: Some(end), .. } if end < 0 => Some(usize::MAX),
                _ => None,
            })
            .max()
    }

    /// Whether `position` is meant whatever the length: it is in a range without an end that begins at or before it.
    pub(crate) fn reaches(&self, position: usize) -> bool {
        self.0.iter().any(|pick| match *pick {
            Pick::Span { start, end: None } => usize::try_from(start).is_ok_and(|start| start <= position),
            _ => false,
        })
    }

    /// The positions meant in a sequence of `len` as far as it has them, ascending, each once.
    pub(crate) fn resolve_within(&self, len: usize) -> Vec<usize> {
        let of = |pick: &Pick| Self(vec![*pick]).resolve(len).unwrap_or_default();
        let mut positions: Vec<usize> = self.0.iter().flat_map(of).collect();
        positions.sort_unstable();
        positions.dedup();
        positions
    }

    /// Whether the last value could be meant whatever the length.
    pub(crate) fn is_open(&self) -> bool {
        self.0.iter().any(|pick| matches!(pick, Pick::Span { end: None, .. }))
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, pick) in self.0.iter().enumerate() {
            if n > 0 {
                f.write_str(",")?;
            }
            match pick {
                Pick::Index(index) => write!(f, "{index}")?,
                Pick::Span { start, end: None } => write!(f, "{start}..")?,
                Pick::Span { start, end: Some(end) } => write!(f, "{start}..{end}")?,
            }
        }
        Ok(())
    }
}

impl From<bool> for Flag {
    fn from(on: bool) -> Self {
        if on { Self::On } else { Self::Off }
    }
}

impl From<Selection> for Flag {
    fn from(selection: Selection) -> Self {
        Self::Select(selection)
    }
}

impl<T: Into<Flag>> From<Option<T>> for Flag {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Unset, Into::into)
    }
}

impl From<RangeFull> for Flag {
    fn from(_: RangeFull) -> Self {
        Self::On
    }
}

/// An index beyond `isize` is out of any range; it must not wrap around into a valid one.
fn saturated<I: TryInto<isize>>(index: I) -> isize {
    index.try_into().unwrap_or(isize::MAX)
}

/// One past an inclusive end; `-1` is the last, so there is nothing past it.
fn past(end: isize) -> Option<isize> {
    if end == -1 { None } else { Some(end.saturating_add(1)) }
}

macro_rules! from_indices {
    ($($int:ty),*) => { $(
        impl From<$int> for Flag {
            fn from(index: $int) -> Self {
                Self::Select(Selection(vec![Pick::Index(saturated(index))]))
            }
        }
        impl<const N: usize> From<[$int; N]> for Flag {
            fn from(indices: [$int; N]) -> Self {
                indices.to_vec().into()
            }
        }
        impl From<&[$int]> for Flag {
            fn from(indices: &[$int]) -> Self {
                indices.to_vec().into()
            }
        }
        impl From<Vec<$int>> for Flag {
            fn from(indices: Vec<$int>) -> Self {
                Self::Select(Selection(indices.into_iter().map(|index| Pick::Index(saturated(index))).collect()))
            }
        }
        impl From<Range<$int>> for Flag {
            fn from(range: Range<$int>) -> Self {
                Self::Select(Selection(vec![Pick::Span { start: saturated(range.start), end: Some(saturated(range.end)) }]))
            }
        }
        impl From<RangeInclusive<$int>> for Flag {
            fn from(range: RangeInclusive<$int>) -> Self {
                Self::Select(Selection(vec![Pick::Span { start: saturated(*range.start()), end: past(saturated(*range.end())) }]))
            }
        }
        impl From<RangeFrom<$int>> for Flag {
            fn from(range: RangeFrom<$int>) -> Self {
                Self::Select(Selection(vec![Pick::Span { start: saturated(range.start), end: None }]))
            }
        }
        impl From<RangeTo<$int>> for Flag {
            fn from(range: RangeTo<$int>) -> Self {
                Self::Select(Selection(vec![Pick::Span { start: 0, end: Some(saturated(range.end)) }]))
            }
        }
        impl From<RangeToInclusive<$int>> for Flag {
            fn from(range: RangeToInclusive<$int>) -> Self {
                Self::Select(Selection(vec![Pick::Span { start: 0, end: past(saturated(range.end)) }]))
            }
        }
    )* };
}
from_indices!(isize, i32, i64, usize);

/// A text that is no selection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not a selection: expected indices and ranges such as `0,-1`, `2..`, `..3` or `1..=4`")]
pub struct ParseFlagError {
    found: String,
}

impl FromStr for Flag {
    type Err = ParseFlagError;

    /// Reads `true`, `false`, or indices and ranges separated by commas (`0,-1`, `2..`, `..3`, `1..=4`).
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ParseFlagError { found: text.to_owned() };
        match text.trim() {
            "true" => return Ok(Self::On),
            "false" => return Ok(Self::Off),
            _ => {}
        }
        let number = |part: &str| part.trim().parse::<isize>().map_err(|_| wrong());
        let picks = text.split(',').map(|part| {
            let Some((start, end)) = part.split_once("..") else { return number(part).map(Pick::Index) };
            let start = if start.trim().is_empty() { 0 } else { number(start)? };
            let end = match end.trim().strip_prefix('=') {
                Some(end) => past(number(end)?),
                None if end.trim().is_empty() => None,
                None => Some(number(end)?),
            };
            Ok(Pick::Span { start, end })
        });
        Ok(Self::Select(Selection(picks.collect::<Result<_, _>>()?)))
    }
}

impl Serialize for Flag {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Unset => serializer.serialize_none(),
            Self::Off => serializer.serialize_bool(false),
            Self::On => serializer.serialize_bool(true),
            Self::Select(selection) => {
                let indices: Option<Vec<isize>> = selection
                    .0
                    .iter()
                    .map(|pick| match pick {
                        Pick::Index(index) => Some(*index),
                        Pick::Span { .. } => None,
                    })
                    .collect();
                let Some(indices) = indices else { return serializer.collect_str(selection) };
                let mut list = serializer.serialize_seq(Some(indices.len()))?;
                for index in indices {
                    list.serialize_element(&index)?;
                }
                list.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FlagVisitor;
        impl<'de> Visitor<'de> for FlagVisitor {
            type Value = Flag;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, an index, a list of indices, or a range such as \"2..\"")
            }
            fn visit_bool<E: de::Error>(self, on: bool) -> Result<Flag, E> {
                Ok(on.into())
            }
            fn visit_i64<E: de::Error>(self, index: i64) -> Result<Flag, E> {
                Ok(index.into())
            }
            fn visit_u64<E: de::Error>(self, index: u64) -> Result<Flag, E> {
                Ok(saturated(index).into())
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Flag, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_none<E: de::Error>(self) -> Result<Flag, E> {
                Ok(Flag::Unset)
            }
            fn visit_unit<E: de::Error>(self) -> Result<Flag, E> {
                Ok(Flag::Unset)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Flag, A::Error> {
                let mut indices: Vec<isize> = Vec::new();
                while let Some(index) = list.next_element()? {
                    indices.push(index);
                }
                Ok(indices.into())
            }
        }
        deserializer.deserialize_any(FlagVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(flag: impl Into<Flag>, len: usize) -> Result<Vec<usize>, Misfit> {
        match flag.into() {
            Flag::Select(selection) => selection.resolve(len),
            flag => panic!("{flag:?} is no selection"),
        }
    }

    #[test]
    #[allow(clippy::reversed_empty_ranges, reason = "negative counts from the end")]
    fn negative_counts_from_the_end() {
        assert_eq!(positions([0, -1], 4), Ok(vec![0, 3]));
        assert_eq!(positions(-4, 4), Ok(vec![0]));
        assert_eq!(positions(-2.., 4), Ok(vec![2, 3]));
        assert_eq!("1..-1".parse::<Flag>().map(|flag| positions(flag, 4)), Ok(Ok(vec![1, 2])));
        assert_eq!(positions(..=-1, 3), Ok(vec![0, 1, 2]));
        assert_eq!(positions([2, 0, 2], 4), Ok(vec![0, 2]));
    }

    #[test]
    fn what_does_not_fit_is_said() {
        assert_eq!(positions(4, 4), Err(Misfit::OutOfRange(4)));
        assert_eq!(positions(-5, 4), Err(Misfit::OutOfRange(-5)));
        assert_eq!(positions(2..6, 4), Err(Misfit::OutOfRange(6)));
        assert_eq!(positions(usize::MAX, 4), Err(Misfit::OutOfRange(isize::MAX)));
        assert_eq!(positions(2..2, 4), Err(Misfit::Empty));
        assert_eq!(positions(4.., 4), Err(Misfit::Empty));
        assert_eq!(positions(Vec::<isize>::new(), 4), Err(Misfit::Empty));
    }

    #[test]
    fn texts_and_json_say_the_same() {
        for (text, json) in [("0,-1", "[0,-1]"), ("3", "3"), ("true", "true"), ("2..", "\"2..\"")] {
            assert_eq!(text.parse::<Flag>().ok(), serde_json::from_str::<Flag>(json).ok(), "{text}");
        }
        assert!("1,x".parse::<Flag>().is_err());
        assert!("".parse::<Flag>().is_err());
    }
}
