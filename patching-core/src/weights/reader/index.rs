//! The index of a sharded checkpoint.

use std::path::{Component, Path};

use serde::Deserialize;
use thiserror::Error;

use super::unique::UniqueEntries;

/// What is wrong with an index of shards.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum IndexError {
    /// Not JSON, or not of the right form.
    #[error("{0}")]
    Json(serde_json::Error),
    /// A shard that is not simply the name of a file beside the index.
    #[error("`{key}` is said to be in `{}`, expected the name of a safetensors file in the same folder", shard.escape_debug())]
    ShardName {
        /// The tensor.
        key: String,
        /// The shard's name.
        shard: String,
    },
    /// A shard that is not there.
    #[error("the shard `{shard}`, which should hold `{key}`, is missing")]
    MissingShard {
        /// The shard's name.
        shard: String,
        /// A tensor in it.
        key: String,
    },
    /// A tensor that is not in its shard.
    #[error("`{key}` is said to be in `{shard}`, but is {}", found.as_ref().map_or("in none".to_owned(), |name| format!("in `{name}`")))]
    WrongShard {
        /// The tensor.
        key: String,
        /// The shard that the index names.
        shard: String,
        /// The shard that holds it, if any does.
        found: Option<String>,
    },
    /// A tensor in two shards.
    #[error("`{key}` is both in `{first}` and in `{second}`")]
    DuplicateTensor {
        /// The tensor.
        key: String,
        /// One shard.
        first: String,
        /// The other.
        second: String,
    },
}

/// Reads an index: pairs of a tensor's key and its shard's name, each a plain file name.
///
/// Everything else in the file is only told, never relied on, and not looked at.
pub(super) fn parse(text: &str) -> Result<Vec<(String, String)>, IndexError> {
    #[derive(Deserialize)]
    struct Index {
        weight_map: UniqueEntries<String>,
    }
    let Index { weight_map: UniqueEntries(entries) } = serde_json::from_str(text).map_err(IndexError::Json)?;
    match entries.iter().find(|(_, shard)| !is_shard_name(shard)) {
        Some((key, shard)) => Err(IndexError::ShardName { key: key.clone(), shard: shard.clone() }),
        None => Ok(entries),
    }
}

/// Whether `name` stays in its folder on every platform.
fn is_shard_name(name: &str) -> bool {
    let mut components = Path::new(name).components();
    let plain = matches!((components.next(), components.next()), (Some(Component::Normal(only)), None) if only == name);
    plain && name.ends_with(".safetensors") && !name.contains(['/', '\\', ':', '\0'])
}

#[cfg(test)]
mod tests {
    use super::is_shard_name;

    #[test]
    fn only_plain_names_are_shards() {
        assert!(is_shard_name("model-00001-of-00002.safetensors"));
        for name in [
            "",
            ".",
            "..",
            "../a.safetensors",
            "/a.safetensors",
            "a/b.safetensors",
            "./a.safetensors",
            "a.safetensors/",
            "a\\b.safetensors",
            "C:a.safetensors",
            "a\0.safetensors",
            "a.bin",
            "..safetensors/..",
        ] {
            assert!(!is_shard_name(name), "{name:?}");
        }
    }
}
