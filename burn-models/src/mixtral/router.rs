use super::MixtralConfig;
use crate::layers::moe::router_class;

router_class!(
    /// Where Mixtral chooses the experts of each token.
    MixtralTopKRouter,
    MixtralConfig { num_local_experts },
    normalize: |_| true,
    scores: |scores, _| scores,
);
