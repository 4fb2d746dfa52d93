use crate::class::Init;
use burn::module::{Module, ModuleDisplay};
use serde::{Serialize, de::DeserializeOwned};

/// A model's `config.json`.
pub trait PretrainedConfig: Clone + std::fmt::Debug + Send + Sync + Serialize + DeserializeOwned + 'static {
    /// The `model_type` values that this config reads.
    const MODEL_TYPES: &'static [&'static str];

    /// Chooses the attention implementation, as `attn_implementation` at load time does.
    fn set_attn_implementation(&mut self, name: &str);

    /// The implementation chosen, if any.
    fn attn_implementation(&self) -> Option<&str>;
}

/// A model that loads and saves Hugging Face checkpoints.
pub trait PreTrainedModel: Module + ModuleDisplay + 'static {
    /// Its `config.json`.
    type Config: PretrainedConfig;

    /// The class name in the config's `architectures`.
    const CLASS_NAME: &'static str;

    /// The path of the base model inside a head, as in the reference (`model`); a base model names the same.
    const BASE_MODEL_PREFIX: &'static str;

    /// Constructs the model with fresh parameters.
    fn new(config: &Self::Config, init: &Init) -> Self;

    /// The config it was constructed from.
    fn config(&self) -> &Self::Config;

    /// Parameters that share their value with another: `(tied, source)`, as paths of this model.
    fn tied_parameters(_config: &Self::Config) -> Vec<(String, String)> {
        Vec::new()
    }
}
