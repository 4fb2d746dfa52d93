//! ViT: images as sequences of patches, after a token that stands for the whole.
//!
//! After [`modeling_vit.py`](https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/models/vit/modeling_vit.py)
//! of Transformers.

mod attention;
mod config;
mod conversion;
mod embeddings;
mod heads;
mod layer;
mod masked;
mod mlp;
mod model;
mod pooler;

pub use attention::ViTAttention;
pub use config::ViTConfig;
pub use embeddings::{ViTEmbeddings, ViTPatchEmbeddings};
pub use heads::ViTForImageClassification;
pub use layer::ViTLayer;
pub use masked::{MaskedImageModelingOutput, ViTForMaskedImageModeling};
pub use mlp::ViTMLP;
pub use model::{ViTModel, ViTParts};
pub use pooler::ViTPooler;
