//! JSON objects whose keys must differ.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::marker::PhantomData;

use safetensors::tensor::TensorInfo;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use super::header::METADATA_KEY;

/// The entries of a JSON object in the file's order; an object with a key twice is an error.
///
/// A map type would let the last of them win, unnoticed.
pub(super) struct UniqueEntries<V>(pub(super) Vec<(String, V)>);

/// The same for a safetensors header, whose metadata is checked for its form and left out.
pub(super) struct TensorEntries(pub(super) Vec<(String, TensorInfo)>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for UniqueEntries<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries { reserved: None, value: PhantomData }).map(Self)
    }
}

impl<'de> Deserialize<'de> for TensorEntries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries { reserved: Some(METADATA_KEY), value: PhantomData }).map(Self)
    }
}

struct Entries<V> {
    /// A key whose value is a map of strings, not an entry.
    reserved: Option<&'static str>,
    value: PhantomData<V>,
}

impl<'de, V: Deserialize<'de>> Visitor<'de> for Entries<V> {
    type Value = Vec<(String, V)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        let mut seen = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            let at = |error| A::Error::custom(format_args!("at `{}`: {error}", key.escape_debug()));
            if !seen.insert(key.clone()) {
                return Err(at("given twice".to_owned()));
            }
            if self.reserved == Some(key.as_str()) {
                map.next_value::<Option<HashMap<String, String>>>().map_err(|error| at(error.to_string()))?;
            } else {
                let value = map.next_value().map_err(|error| at(error.to_string()))?;
                entries.push((key, value));
            }
        }
        Ok(entries)
    }
}
