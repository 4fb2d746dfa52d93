//! Qwen2-MoE: Qwen2 whose feed-forward blocks choose some of many experts for each token, beside one that all share.
//!
//! After [`modeling_qwen2_moe.py`](https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/models/qwen2_moe/modeling_qwen2_moe.py)
//! of Transformers.

mod attention;
mod config;
mod conversion;
mod experts;
mod heads;
mod layer;
mod mlp;
mod model;
mod router;

pub use attention::Qwen2MoeAttention;
pub use config::Qwen2MoeConfig;
pub use experts::{Qwen2MoeExperts, Qwen2MoeFeedForward, Qwen2MoeSparseMoeBlock};
pub use heads::{Qwen2MoeForCausalLM, Qwen2MoeForSequenceClassification};
pub use layer::{Qwen2MoeDecoderLayer, Qwen2MoeRMSNorm};
pub use mlp::Qwen2MoeMLP;
pub use model::{Qwen2MoeModel, Qwen2MoeRotaryEmbedding};
pub use router::Qwen2MoeTopKRouter;
