use crate::clip::CLIPVisionConfig;
use crate::config::{
    ConfigError, GeneralConfig, ImageSize, StackSizes, model_config, product, take_other_names, validate_stack,
};
use crate::layers::Activation;
use crate::llama::LlamaConfig;
use crate::models::FeatureLayers;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The `config.json` of a LLaVA model. Fields are named as there; what is absent has the reference's default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, remote = "Self")]
pub struct LlavaConfig {
    /// The vision tower.
    pub vision_config: CLIPVisionConfig,
    /// The language model.
    pub text_config: LlamaConfig,
    /// The token that stands for a feature of an image.
    pub image_token_index: i64,
    /// How many features an image has; not used here.
    pub image_seq_length: usize,
    /// The activation between features and what the language model reads.
    pub projector_hidden_act: Activation,
    /// Which positions of the tower become features: `default`, all but the first, or `full`, all.
    pub vision_feature_select_strategy: String,
    /// Which hidden states of the tower become features.
    pub vision_feature_layer: FeatureLayers,
    /// Whether the maps between features and what the language model reads have biases.
    pub multimodal_projector_bias: bool,
    /// Whether the language model head uses the embedding's weight.
    pub tie_word_embeddings: bool,
    /// What is not about the architecture, and everything else.
    #[serde(flatten)]
    pub general: GeneralConfig,
}

impl Default for LlavaConfig {
    fn default() -> Self {
        let mut vision_config = CLIPVisionConfig {
            intermediate_size: 4096,
            hidden_size: 1024,
            patch_size: ImageSize::Square(14),
            image_size: ImageSize::Square(336),
            num_hidden_layers: 24,
            num_attention_heads: 16,
            projection_dim: 768,
            ..CLIPVisionConfig::default()
        };
        vision_config.general.extra.insert("vocab_size".to_owned(), 32_000.into());
        Self {
            vision_config,
            text_config: LlamaConfig::default(),
            image_token_index: 32_000,
            image_seq_length: 576,
            projector_hidden_act: Activation::Gelu,
            vision_feature_select_strategy: "default".to_owned(),
            vision_feature_layer: FeatureLayers::One(-2),
            multimodal_projector_bias: true,
            tie_word_embeddings: false,
            general: GeneralConfig::new(Self::MODEL_TYPE),
        }
    }
}

impl LlavaConfig {
    /// Whether the language model head uses the embedding's weight: either config may say so.
    pub fn ties_head(&self) -> bool {
        self.tie_word_embeddings || self.text_config.tie_word_embeddings
    }

    /// The size of a feature: that of the tower's hidden states, for each of those that it is made of.
    pub fn feature_size(&self) -> usize {
        self.vision_config.hidden_size.saturating_mul(self.vision_feature_layer.as_slice().len())
    }

    fn check(&self) -> Result<(), ConfigError> {
        let parts = [
            ("vision_config.model_type", &self.vision_config.general.model_type, CLIPVisionConfig::MODEL_TYPE),
            ("text_config.model_type", &self.text_config.general.model_type, LlamaConfig::MODEL_TYPE),
        ];
        if let Some((field, found, supported)) = parts.into_iter().find(|(_, found, supported)| found != supported) {
            return Err(ConfigError::out_of_range(field, found, supported));
        }
        let strategy = &self.vision_feature_select_strategy;
        if !["default", "full"].contains(&strategy.as_str()) {
            return Err(ConfigError::out_of_range("vision_feature_select_strategy", strategy, "default or full"));
        }
        let states = self.vision_config.num_hidden_layers.saturating_add(1);
        for layer in self.vision_feature_layer.as_slice() {
            let counted = if *layer < 0 { layer.unsigned_abs().saturating_sub(1) } else { layer.unsigned_abs() };
            if counted >= states {
                let expected = format!("-{states} to {}, as the tower has {states} hidden states", states - 1);
                return Err(ConfigError::out_of_range("vision_feature_layer", layer, expected));
            }
        }
        let hidden = self.text_config.hidden_size;
        validate_stack(
            &self.general,
            &StackSizes {
                sizes: &[("vision_feature_layer", self.feature_size())],
                layers: ("num_hidden_layers", 0),
                numbers: &[],
                keys: &["hidden_states", "attentions"],
                parameters: [0, product(&[hidden, self.feature_size().saturating_add(hidden)])],
            },
        )
    }
}

model_config!(
    LlavaConfig,
    "llava",
    use_cache: |_config| None,
    parts: [vision_config, text_config],
    adapt: |fields| adapt(fields).map_err(D::Error::custom)?
);

/// Takes other spellings, and refuses parts of other types before their fields are read as those of the supported ones.
fn adapt(fields: &mut Map<String, Value>) -> Result<(), String> {
    take_other_names(fields, &[("image_token_id", "image_token_index")]);
    for (part, supported) in [("vision_config", CLIPVisionConfig::MODEL_TYPE), ("text_config", LlamaConfig::MODEL_TYPE)]
    {
        match fields.get(part) {
            Some(Value::Null) => drop(fields.remove(part)),
            Some(Value::Object(config)) => {
                let found = config.get("model_type").and_then(Value::as_str);
                if let Some(found) = found.filter(|found| *found != supported) {
                    return Err(format!("`{part}` is of model type `{found}`, supported is `{supported}`"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}
