//! Mixtral: Mistral whose feed-forward blocks choose some of several experts for each token.
//!
//! After [`modeling_mixtral.py`](https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/models/mixtral/modeling_mixtral.py)
//! of Transformers.

mod attention;
mod config;
mod conversion;
mod experts;
mod heads;
mod layer;
mod model;
mod router;

pub use attention::MixtralAttention;
pub use config::MixtralConfig;
pub use experts::{MixtralExperts, MixtralSparseMoeBlock};
pub use heads::{MixtralForCausalLM, MixtralForSequenceClassification};
pub use layer::{MixtralDecoderLayer, MixtralRMSNorm};
pub use model::{MixtralModel, MixtralRotaryEmbedding};
pub use router::MixtralTopKRouter;
