//! Qwen2: Llama with biases on queries, keys and values, and layers that may look back a fixed number of tokens.
//!
//! After [`modeling_qwen2.py`](https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/models/qwen2/modeling_qwen2.py)
//! of Transformers.

mod attention;
mod config;
mod heads;
mod layer;
mod mlp;
mod model;

pub use attention::Qwen2Attention;
pub use config::Qwen2Config;
pub use heads::{Qwen2ForCausalLM, Qwen2ForSequenceClassification};
pub use layer::{Qwen2DecoderLayer, Qwen2RMSNorm};
pub use mlp::Qwen2MLP;
pub use model::{Qwen2Model, Qwen2RotaryEmbedding};
