//! DINOv2: images as sequences of patches, in layers whose branches are scaled channel by channel.
//!
//! After [`modeling_dinov2.py`](https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/models/dinov2/modeling_dinov2.py)
//! of Transformers.

mod attention;
mod config;
mod conversion;
mod embeddings;
mod heads;
mod layer;
mod mlp;
mod model;

pub use attention::Dinov2Attention;
pub use config::Dinov2Config;
pub use embeddings::{Dinov2Embeddings, Dinov2PatchEmbeddings};
pub use heads::Dinov2ForImageClassification;
pub use layer::{Dinov2DropPath, Dinov2Layer, Dinov2LayerScale};
pub use mlp::{Dinov2FeedForward, Dinov2MLP, Dinov2SwiGLUFFN};
pub use model::{Dinov2Encoder, Dinov2Model};
