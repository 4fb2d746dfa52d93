//! Which experts a mixture of experts chose for each token: recorded in one call, forced in another.
//!
//! A model under training and the engine that generated its texts compute slightly different numbers, so that their
//! routers may choose different experts. Forcing the choice of the one on the other keeps both on the same path.
//!
//! ```
//! # #[cfg(feature = "flex")] {
//! use burn::tensor::{Device, Int, Tensor};
//! use burn_models::TextInputs;
//! use burn_models::mixtral::{MixtralConfig, MixtralForCausalLM};
//! use burn_models::routing::ExpertRouting;
//! use patching_core::prelude::*;
//!
//! let config = MixtralConfig {
//!     vocab_size: 50, hidden_size: 16, intermediate_size: 8, num_hidden_layers: 2, num_attention_heads: 2,
//!     num_key_value_heads: Some(2), num_local_experts: 4, ..MixtralConfig::default()
//! };
//! let model = MixtralForCausalLM::new(&config, &Init::new(&Device::flex()));
//! let ids = Tensor::<2, Int>::from_data([[1, 7, 9]], &Device::flex());
//!
//! let recorded = model.forward(ids.clone(), &ForwardKwargs::new().output("router_indices", true))?;
//! let routing = ExpertRouting::from_recorded(&recorded.router_indices, 4)?;
//! // as a serving engine keeps it: tokens, layers, top k
//! assert_eq!(routing.shape(), [3, 2, 2]);
//! let bytes: Vec<u8> = routing.to_array()?;
//! let routing = ExpertRouting::from_array(&bytes, [3, 2, 2], 4)?;
//!
//! let replayed = model.forward(TextInputs::new(ids).expert_routing(routing), &ForwardKwargs::new())?;
//! assert_eq!(replayed.logits.to_data(), recorded.logits.to_data());
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod expert_routing;
mod index;
mod replay;

pub use error::RoutingError;
pub use expert_routing::ExpertRouting;
pub use index::ExpertIndex;
pub(crate) use replay::Replay;
