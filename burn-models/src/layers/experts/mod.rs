//! Mixtures of experts: what every implementation is given, the three that come along, and the registry of all.

mod batched;
mod call;
mod eager;
mod grouped;
mod groups;
mod interface;

pub use batched::batched_mm_experts;
pub use call::Experts;
pub use eager::eager_experts;
pub use grouped::grouped_mm_experts;
pub use interface::{DEFAULT_EXPERTS, ExpertsFunction, ExpertsImplementation, ExpertsInterface, RegisterExpertsError};
