//! Mistral: Llama without biases, whose attention looks back a fixed number of tokens.
//!
//! After [`modeling_mistral.py`](https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/models/mistral/modeling_mistral.py)
//! of Transformers.

mod attention;
mod config;
mod heads;
mod layer;
mod mlp;
mod model;

pub use attention::MistralAttention;
pub use config::MistralConfig;
pub use heads::{MistralForCausalLM, MistralForSequenceClassification};
pub use layer::{MistralDecoderLayer, MistralRMSNorm};
pub use mlp::MistralMLP;
pub use model::{MistralModel, MistralRotaryEmbedding};
