//! What routers of mixtures of experts share: choosing experts, and the loss that balances them.

mod balance;
mod router;

pub use balance::load_balancing_loss;
pub use router::{choose_experts, router_logits, top_k_indices};
