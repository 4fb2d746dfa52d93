//! Hugging Face checkpoints: reading, loading into a model, saving.

mod pretrained;

pub use pretrained::{PreTrainedModel, PretrainedConfig};
