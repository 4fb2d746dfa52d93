use super::Dinov2Config;
use crate::layers::patch_attention_class;

patch_attention_class!(
    /// DINOv2's attention.
    Dinov2Attention,
    Dinov2Config
);
