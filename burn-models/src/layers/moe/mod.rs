//! What routers of mixtures of experts share: choosing experts, and the loss that balances them.

mod balance;
mod classes;
mod conversion;
mod router;

pub use balance::load_balancing_loss;
pub(crate) use classes::{experts_class, router_class};
pub(crate) use conversion::expert_rules;
pub use router::{choose_experts, router_logits, top_k_indices};
