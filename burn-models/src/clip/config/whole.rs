use super::{CLIPTextConfig, CLIPVisionConfig};
use crate::config::{ConfigError, GeneralConfig, StackSizes, model_config, product, validate_stack};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The `config.json` of a CLIP model. Fields are named as there; what is absent has the reference's default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, remote = "Self")]
pub struct CLIPConfig {
    /// The text tower.
    pub text_config: CLIPTextConfig,
    /// The vision tower.
    pub vision_config: CLIPVisionConfig,
    /// The size of what texts and images are compared by.
    pub projection_dim: usize,
    /// The logarithm of what likenesses are multiplied by, in a fresh model.
    pub logit_scale_init_value: f64,
    /// What the standard deviations of fresh weights are multiplied by.
    pub initializer_factor: f64,
    /// What is not about the architecture, and everything else.
    #[serde(flatten)]
    pub general: GeneralConfig,
}

impl Default for CLIPConfig {
    fn default() -> Self {
        Self {
            text_config: CLIPTextConfig::default(),
            vision_config: CLIPVisionConfig::default(),
            projection_dim: 512,
            logit_scale_init_value: 2.6592,
            initializer_factor: 1.0,
            general: GeneralConfig::new(Self::MODEL_TYPE),
        }
    }
}

impl CLIPConfig {
    fn check(&self) -> Result<(), ConfigError> {
        let width = self.text_config.hidden_size.saturating_add(self.vision_config.hidden_size);
        validate_stack(
            &self.general,
            &StackSizes {
                sizes: &[("projection_dim", self.projection_dim)],
                layers: ("num_hidden_layers", 0),
                numbers: &[("initializer_factor", self.initializer_factor)],
                keys: &["hidden_states", "attentions"],
                parameters: [0, product(&[width, self.projection_dim])],
            },
        )
    }
}

model_config!(
    CLIPConfig,
    "clip",
    use_cache: |_config| None,
    parts: [text_config, vision_config],
    adapt: |fields| {
        let adapted = take_in::<CLIPTextConfig>(fields, "text_config", "text_config_dict")
            .and_then(|()| take_in::<CLIPVisionConfig>(fields, "vision_config", "vision_config_dict"));
        adapted.map_err(D::Error::custom)?
    }
);

/// Puts the older spelling of a part, which says all of it and wins, into the newer one. A part that is null is the
/// default.
fn take_in<C: DeserializeOwned + Serialize>(
    fields: &mut Map<String, Value>,
    part: &'static str,
    older: &'static str,
) -> Result<(), String> {
    if fields.get(part).is_some_and(Value::is_null) {
        fields.remove(part);
    }
    let Some(found) = fields.remove(older).filter(|found| !found.is_null()) else { return Ok(()) };
    let wrong = |error: serde_json::Error| format!("`{older}`: {error}");
    let config: C = serde_json::from_value(found).map_err(wrong)?;
    let Value::Object(complete) = serde_json::to_value(config).map_err(wrong)? else { return Ok(()) };
    // anything but an object is left for the reader to refuse
    if let Value::Object(newer) = fields.entry(part).or_insert_with(|| Value::Object(Map::new())) {
        newer.extend(complete);
    }
    Ok(())
}
