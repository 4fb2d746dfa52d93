//! Qwen3: Qwen2 with norms on the heads of queries and keys in place of biases.
//!
//! After [`modeling_qwen3.py`](https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/models/qwen3/modeling_qwen3.py)
//! of Transformers.

mod attention;
mod config;
mod heads;
mod layer;
mod mlp;
mod model;

pub use attention::Qwen3Attention;
pub use config::Qwen3Config;
pub use heads::{Qwen3ForCausalLM, Qwen3ForSequenceClassification};
pub use layer::{Qwen3DecoderLayer, Qwen3RMSNorm};
pub use mlp::Qwen3MLP;
pub use model::{Qwen3Model, Qwen3RotaryEmbedding};
