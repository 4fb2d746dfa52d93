use super::ConfigError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The kinds of rotary position embedding that are supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RopeType {
    /// As trained.
    Default,
    /// All frequencies divided by `factor`.
    Linear,
    /// Low frequencies divided by `factor`, high ones kept, a ramp in between.
    Llama3,
}

impl RopeType {
    /// The names as they stand in `config.json`.
    pub const NAMES: [&'static str; 3] = ["default", "linear", "llama3"];
}

/// `rope_parameters`: how positions turn queries and keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RopeParameters {
    /// The kind, by name; see [`RopeParameters::kind`].
    pub rope_type: String,
    /// The base wavelength.
    pub rope_theta: f64,
    /// By how much `linear` and `llama3` stretch the context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// `llama3`: below this share of the old context a frequency is divided by `factor`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low_freq_factor: Option<f64>,
    /// `llama3`: above this share of the old context a frequency is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high_freq_factor: Option<f64>,
    /// `llama3`: the context that the model was first trained on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_max_position_embeddings: Option<f64>,
    /// The share of each head that other families turn. As in the reference, these turn whole heads whatever it says,
    /// and cannot be scaled where it is not 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial_rotary_factor: Option<f64>,
    /// Anything else, kept as it was read.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Default for RopeParameters {
    fn default() -> Self {
        Self {
            rope_type: "default".to_owned(),
            rope_theta: 10_000.0,
            factor: None,
            low_freq_factor: None,
            high_freq_factor: None,
            original_max_position_embeddings: None,
            partial_rotary_factor: None,
            extra: Map::new(),
        }
    }
}

impl RopeParameters {
    /// The default kind with this base wavelength.
    pub fn new(rope_theta: f64) -> Self {
        Self { rope_theta, ..Self::default() }
    }

    /// The kind.
    ///
    /// # Errors
    ///
    /// [`ConfigError::UnsupportedRope`] lists the kinds that are supported.
    pub fn kind(&self) -> Result<RopeType, ConfigError> {
        match self.rope_type.as_str() {
            "default" => Ok(RopeType::Default),
            "linear" => Ok(RopeType::Linear),
            "llama3" => Ok(RopeType::Llama3),
            other => Err(ConfigError::UnsupportedRope { found: other.to_owned(), known: RopeType::NAMES.to_vec() }),
        }
    }

    /// Checks that the kind is known, that its numbers are there, and that they are usable with heads of
    /// `head_dim` values.
    ///
    /// # Errors
    ///
    /// Names the first field that is not.
    pub fn validate(&self, head_dim: usize) -> Result<(), ConfigError> {
        let kind = self.kind()?;
        positive("rope_theta", Some(self.rope_theta), kind)?;
        if let Some(share) = self.partial_rotary_factor
            && share != 1.0
            && kind != RopeType::Default
        {
            let expected = format!("1 with the rope_type `{}`", self.rope_type);
            return Err(ConfigError::out_of_range("partial_rotary_factor", share, expected));
        }
        if head_dim == 0 || head_dim % 2 == 1 {
            return Err(ConfigError::out_of_range("head_dim", head_dim, "an even number of rotary values"));
        }
        if kind != RopeType::Default {
            positive("factor", self.factor, kind)?;
        }
        if kind == RopeType::Llama3 {
            let low = positive("low_freq_factor", self.low_freq_factor, kind)?;
            let high = positive("high_freq_factor", self.high_freq_factor, kind)?;
            positive("original_max_position_embeddings", self.original_max_position_embeddings, kind)?;
            if high <= low {
                return Err(ConfigError::out_of_range(
                    "high_freq_factor",
                    high,
                    format!("more than `low_freq_factor`, which is {low}"),
                ));
            }
        }
        Ok(())
    }
}

fn positive(field: &'static str, value: Option<f64>, kind: RopeType) -> Result<f64, ConfigError> {
    let value = value
        .ok_or_else(|| ConfigError::Missing { field, because: format!("the rope_type `{kind:?}`").to_lowercase() })?;
    if value.is_finite() && value > 0.0 {
        Ok(value)
    } else {
        Err(ConfigError::out_of_range(field, value, "a positive number"))
    }
}
