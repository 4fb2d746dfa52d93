//! CLIP: a text tower and a vision tower whose pooled outputs are compared.
//!
//! After [`modeling_clip.py`](https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/models/clip/modeling_clip.py)
//! of Transformers.

mod attention;
mod config;
mod embeddings;
mod heads;
mod layer;
mod mlp;
mod model;
mod outputs;
mod text;
mod vision;

pub use attention::CLIPAttention;
pub use config::{CLIPConfig, CLIPEncoderConfig, CLIPTextConfig, CLIPVisionConfig};
pub use embeddings::{CLIPTextEmbeddings, CLIPVisionEmbeddings};
pub use heads::{CLIPForImageClassification, CLIPTextModelWithProjection, CLIPVisionModelWithProjection};
pub use layer::{CLIPEncoder, CLIPEncoderLayer};
pub use mlp::CLIPMLP;
pub use model::CLIPModel;
pub use outputs::{CLIPOutput, CLIPTextModelOutput, CLIPVisionModelOutput};
pub use text::CLIPTextModel;
pub use vision::CLIPVisionModel;
