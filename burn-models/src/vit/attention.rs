use super::ViTConfig;
use crate::layers::patch_attention_class;

patch_attention_class!(
    /// ViT's attention.
    ViTAttention,
    ViTConfig
);
