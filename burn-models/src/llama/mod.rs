//! Llama: rotary positions, grouped queries, a gated feed-forward block and root-mean-square norms.
//!
//! After [`modeling_llama.py`](https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/models/llama/modeling_llama.py)
//! of Transformers.

mod attention;
mod config;
mod heads;
mod layer;
mod mlp;
mod model;

pub use attention::LlamaAttention;
pub use config::LlamaConfig;
pub use heads::{LlamaForCausalLM, LlamaForSequenceClassification};
pub use layer::{LlamaDecoderLayer, LlamaRMSNorm};
pub use mlp::LlamaMLP;
pub use model::{LlamaModel, LlamaRotaryEmbedding};
