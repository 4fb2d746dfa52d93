//! A model's `config.json`: reading and writing it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, Serializer, de::DeserializeOwned, ser::SerializeMap};
use serde_json::Value;
use thiserror::Error;

use super::error::ReadError;
use super::fs::read_text;

/// The file's name.
pub(crate) const CONFIG_NAME: &str = "config.json";

/// Far beyond any real config; keeps a hostile one from filling the memory.
const CONFIG_LIMIT: u64 = 16 << 20;

/// A model's `config.json`.
pub trait PretrainedConfig: Clone + std::fmt::Debug + Send + Sync + Serialize + DeserializeOwned + 'static {
    /// The `model_type` values that this config reads.
    const MODEL_TYPES: &'static [&'static str];

    /// Chooses the attention implementation, as `attn_implementation` at load time does.
    fn set_attn_implementation(&mut self, name: &str);

    /// The implementation chosen, if any.
    fn attn_implementation(&self) -> Option<&str>;

    /// Chooses the implementation of mixtures of experts, as `experts_implementation` at load time does.
    ///
    /// # Errors
    ///
    /// A sentence that says why not: unless a config says otherwise, because the model has no experts.
    fn set_experts_implementation(&mut self, name: &str) -> Result<(), String> {
        Err(format!("experts_implementation `{name}` was chosen for a model without experts"))
    }

    /// The implementation of mixtures of experts chosen, if any.
    fn experts_implementation(&self) -> Option<&str> {
        None
    }

    /// Where this config lies inside that of a composite model of type `model_type`, if it does.
    ///
    /// A text tower that can be loaded out of a `clip` checkpoint answers `Some("text_config")` for `clip`.
    fn nested_in(_model_type: &str) -> Option<&'static str> {
        None
    }

    /// Whether a model can be constructed from these values; if not, why.
    ///
    /// The place to refuse what would take for ever or all memory to construct, such as a million layers. Called for
    /// every config that is read, and before every construction that may fail.
    ///
    /// # Errors
    ///
    /// A sentence that names the field, what it is, and what is expected.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }

    /// Whether the attention implementation chosen is one that the program has; if not, why.
    ///
    /// Called before every construction that may fail, and not when a config is read: one that names an
    /// implementation that only other programs have can be loaded with another.
    ///
    /// # Errors
    ///
    /// A sentence that names the implementation and the choices.
    fn validate_attn_implementation(&self) -> Result<(), String> {
        Ok(())
    }

    /// Whether the implementation of mixtures of experts chosen is one that the program has, and there are experts; if
    /// not, why. Called as [`validate_attn_implementation`](Self::validate_attn_implementation).
    ///
    /// # Errors
    ///
    /// A sentence that names the implementation and the choices.
    fn validate_experts_implementation(&self) -> Result<(), String> {
        Ok(())
    }

    /// Reads `config.json` in the folder `dir`.
    ///
    /// # Errors
    ///
    /// When the file is absent, too large, not JSON, of another `model_type`, or has a field that is wrong; the error
    /// names the file and the field.
    fn from_pretrained(dir: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Self::from_json_file(dir.as_ref().join(CONFIG_NAME))
    }

    /// Reads a config from the file `path`.
    ///
    /// # Errors
    ///
    /// As [`from_pretrained`](Self::from_pretrained).
    fn from_json_file(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let path = path.as_ref();
        let text = read_text(path, CONFIG_LIMIT)?;
        parse(&text).map_err(|problem| ConfigError::Invalid { path: path.to_owned(), problem })
    }

    /// Reads a config from JSON text.
    ///
    /// # Errors
    ///
    /// As [`from_pretrained`](Self::from_pretrained).
    fn from_json(text: &str) -> Result<Self, ConfigError> {
        parse(text).map_err(|problem| ConfigError::Invalid { path: PathBuf::from(CONFIG_NAME), problem })
    }
}

/// What a `config.json` says of the kind of model, to choose a config type by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct ConfigHead {
    /// The `model_type`, which configs older than the field lack.
    pub model_type: Option<String>,
    /// The names of the classes that the checkpoint was saved from.
    pub architectures: Option<Vec<String>>,
}

impl ConfigHead {
    /// Reads `config.json` in the folder `dir`.
    ///
    /// # Errors
    ///
    /// When the file is absent, too large, not JSON, or has one of these fields in another form.
    pub fn from_pretrained(dir: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let path = dir.as_ref().join(CONFIG_NAME);
        from_text(&read_text(&path, CONFIG_LIMIT)?).map_err(|problem| ConfigError::Invalid { path, problem })
    }
}

/// A config cannot be read.
#[derive(Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The file's content is wrong.
    #[error("`{}` is not a valid config: {problem}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        problem: ConfigProblem,
    },
    /// No model can be constructed from the config's values.
    #[error("no model can be constructed from the config: {0}")]
    Unbuildable(String),
}

crate::__debug_as_display!(ConfigError);

/// What is wrong with a config.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigProblem {
    /// Not JSON, or a field of the wrong kind.
    #[error("at `{field}`: {source}")]
    Field {
        /// The field's path; `.` is the whole file.
        field: String,
        /// What was found and expected there.
        source: serde_json::Error,
    },
    /// A config of another kind of model.
    #[error("model type `{found}`, expected {}", one_of(known))]
    ModelType {
        /// The file's `model_type`.
        found: String,
        /// Those that can be read.
        known: &'static [&'static str],
    },
    /// Values that no model can be constructed from.
    #[error("{0}")]
    Value(String),
    /// A composite config without the part that was looked for.
    #[error("model type `{model_type}` without `{field}`")]
    NoPart {
        /// The file's `model_type`.
        model_type: String,
        /// The part's field.
        field: &'static str,
    },
}

fn one_of(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.as_slice() {
        [] => "none".to_owned(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

fn parse<C: PretrainedConfig>(text: &str) -> Result<C, ConfigProblem> {
    // Only the type is kept of this first pass, so that a huge config of the wrong kind costs nothing.
    let head: ConfigHead = from_text(text)?;
    let config: C = match head.model_type {
        // Configs older than the field exist; they are read as what was asked for.
        None => from_text(text)?,
        Some(found) if C::MODEL_TYPES.contains(&found.as_str()) => from_text(text)?,
        Some(model_type) => match C::nested_in(&model_type) {
            None => return Err(ConfigProblem::ModelType { found: model_type, known: C::MODEL_TYPES }),
            Some(field) => part(text, model_type, field)?,
        },
    };
    config.validate().map_err(ConfigProblem::Value)?;
    Ok(config)
}

/// The config at `field` of a composite one.
fn part<C: DeserializeOwned>(text: &str, model_type: String, field: &'static str) -> Result<C, ConfigProblem> {
    let mut whole: Value = from_text(text)?;
    let Some(part) = whole.get_mut(field).map(Value::take) else {
        return Err(ConfigProblem::NoPart { model_type, field });
    };
    serde_path_to_error::deserialize(part).map_err(|error| {
        let path = error.path().to_string();
        let field = if path == "." { field.to_owned() } else { format!("{field}.{path}") };
        ConfigProblem::Field { field, source: error.into_inner() }
    })
}

fn from_text<T: DeserializeOwned>(text: &str) -> Result<T, ConfigProblem> {
    let field = |path: String, source| ConfigProblem::Field { field: path, source };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|error| field(error.path().to_string(), error.into_inner()))?;
    deserializer.end().map_err(|source| field(".".to_owned(), source))?;
    Ok(value)
}

/// Writes `value` as the reference does: two spaces, sorted keys, a line break at the end.
pub(crate) fn to_sorted_json(value: &Value) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(&Sorted(value))?;
    text.push('\n');
    Ok(text)
}

/// Serialises objects in the order of their keys, whatever order `serde_json` was built to keep.
struct Sorted<'a>(&'a Value);

impl Serialize for Sorted<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(fields) => {
                let sorted: BTreeMap<_, _> = fields.iter().collect();
                let mut map = serializer.serialize_map(Some(sorted.len()))?;
                for (key, value) in sorted {
                    map.serialize_entry(key, &Sorted(value))?;
                }
                map.end()
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(Sorted)),
            other => other.serialize(serializer),
        }
    }
}
