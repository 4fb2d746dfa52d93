use super::ConfigError;
use patching_core::capture::Flag;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The fields of a `config.json` that have nothing to do with the architecture, and whatever else it holds.
///
/// Fields that no struct names are kept in [`extra`](Self::extra) and written back. A flag for a recorded output
/// (`output_hidden_states`, `output_attentions`, `output_<key>`) is such a field, because every key may have one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneralConfig {
    /// The family, by which auto loading chooses.
    pub model_type: String,
    /// The class names that the checkpoint was saved from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architectures: Option<Vec<String>>,
    /// The dtype that the checkpoint was saved in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<String>,
    /// The attention implementation; a matter of the running program, so never written.
    #[serde(default, skip_serializing)]
    pub attn_implementation: Option<String>,
    /// The implementation of mixtures of experts; a matter of the running program, so never written.
    #[serde(default, skip_serializing)]
    pub experts_implementation: Option<String>,
    /// Whether `forward` answers with the struct or with the tuple of its fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_dict: Option<bool>,
    /// Whether the last recorded hidden state is the one after the final norm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tie_last_hidden_states: Option<bool>,
    /// The names of a classifier's labels, by index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id2label: Option<BTreeMap<String, String>>,
    /// `regression`, `single_label_classification` or `multi_label_classification`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem_type: Option<String>,
    /// Everything else, as it was read.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl GeneralConfig {
    /// The general part of a fresh config of `model_type`.
    pub fn new(model_type: &str) -> Self {
        Self { model_type: model_type.to_owned(), ..Self::default() }
    }

    /// How many labels a classifier distinguishes: as many as `id2label` names, else `num_labels`, else 2.
    pub fn num_labels(&self) -> usize {
        let named = self.id2label.as_ref().map(BTreeMap::len);
        let counted = || self.extra.get("num_labels").and_then(Value::as_u64);
        named.or_else(|| counted().and_then(|n| usize::try_from(n).ok())).unwrap_or(2)
    }

    /// Says how many labels a classifier distinguishes, with the reference's default names.
    pub fn set_num_labels(&mut self, num_labels: usize) {
        let names = (0..num_labels).map(|i| (i.to_string(), format!("LABEL_{i}")));
        self.id2label = Some(names.collect());
        self.extra.remove("num_labels");
        self.extra.remove("label2id");
    }

    /// What the config says of the output `key`, if anything: `output_<key>`.
    pub fn output_flag(&self, key: &str) -> Option<Flag> {
        Flag::deserialize(self.output(key)?).ok()
    }

    /// The field `output_<key>`. Every forward pass asks, so its name is not put together.
    fn output(&self, key: &str) -> Option<&Value> {
        let named = |name: &String| name.strip_prefix("output_") == Some(key);
        self.extra.iter().find(|(name, _)| named(name)).map(|(_, value)| value)
    }

    /// Checks that what the config says of the output `key` is a flag.
    pub(crate) fn check_output(&self, key: &str) -> Result<(), ConfigError> {
        match self.output(key) {
            Some(found) if self.output_flag(key).is_none() => {
                Err(ConfigError::Flag { key: key.to_owned(), found: found.to_string() })
            }
            _ => Ok(()),
        }
    }

    /// Asks for the output `key` in every forward pass that does not say otherwise: `true`, an index, a list or a
    /// range.
    pub fn set_output(&mut self, key: &str, flag: impl Into<Flag>) {
        // A flag is always a value of JSON.
        let value = serde_json::to_value(flag.into()).unwrap_or_default();
        self.extra.insert(format!("output_{key}"), value);
    }
}
