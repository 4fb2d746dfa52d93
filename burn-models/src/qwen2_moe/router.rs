use super::Qwen2MoeConfig;
use crate::layers::moe::router_class;

router_class!(
    /// Where Qwen2-MoE chooses the experts of each token.
    Qwen2MoeTopKRouter,
    Qwen2MoeConfig { num_experts },
    normalize: |config| config.norm_topk_prob,
    scores: |scores, dtype| scores.cast(dtype),
);
