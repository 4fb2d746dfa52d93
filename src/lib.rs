//! Looks inside transformer models on [Burn](burn).
//!
//! - **Record**: every intermediate value that a model declares (hidden states, attention weights, router logits, or
//!   anything else that a submodule returns) comes back with the output of one call, for all layers or for those that
//!   were selected. Nothing is collected by hand, and it costs nothing when it is off.
//! - **Declare**: a model of your own becomes recordable with a few attributes; see [`patching_core`].
//! - **Load and save**: Hugging Face checkpoints, as they are; see [`patching_core::weights`].
//! - **Models**: families that agree with the reference implementation in every recorded value; see [`burn_models`].
//!
//! # The shortest whole example
//!
//! A tiny trained model comes with this repository. It continues sequences that repeat, and does so in the way that
//! every larger language model does as well: a head of its second layer looks at the token that came after an earlier
//! occurrence of the current one.
//!
//! ```
//! use burn::tensor::{Device, Int, Tensor};
//! use burnlens::burn_models::llama::LlamaForCausalLM;
//! use burnlens::prelude::*;
//!
//! # #[cfg(feature = "flex")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Device::flex();
//! let model = LlamaForCausalLM::from_pretrained("models/tiny-decoder", &device)?;
//!
//! // <s> k d w f k d
//! let tokens = Tensor::<2, Int>::from_data([[2_i64, 13, 6, 25, 8, 13, 6]], &device);
//! let kwargs = ForwardKwargs::new().output_hidden_states([0, -1]).output_attentions(true);
//! let output = model.forward(tokens, &kwargs)?;
//!
//! // the token that followed `d` before: `w`
//! assert_eq!(output.logits.slice([0..1, 6..7]).argmax(2).into_scalar::<i64>(), 25);
//! // two of three hidden states were kept, each at its own position
//! assert_eq!(output.hidden_states.len(), 3);
//! assert!(output.hidden_states.get(1).is_none());
//! // attention weights of each layer, `[batch, heads, query, key]`, and where they are from
//! for (layer, path, weights) in output.attentions.iter() {
//!     assert_eq!(path, format!("layers.{layer}.self_attn"));
//!     assert_eq!(weights.dims(), [1, 4, 7, 7]);
//! }
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "flex"))]
//! # fn main() {}
//! ```
//!
//! The command-line tool shows the same without a line of code: `burnlens capture`.
//!
//! # Features
//!
//! | feature | what for |
//! | --- | --- |
//! | `flex` (default) | Burn's own backend for processors |
//! | `ndarray`, `wgpu` | other backends, chosen when the program runs |
//! | `autodiff` | gradients on each of them |
//! | `text` (default) | `burnlens capture --text`, for which the tokenizer is built |
//! | `capture` (default) | shapes in `burnlens plan`, by Burn's device that computes nothing |
//! | `train` | autodiff and optimizers, for the example that trains the tiny model |
#![forbid(unsafe_code)]

pub use burn_models;
// The macros name the runtime by its path, also through this crate.
pub use patching_core;
pub use patching_core::prelude;
pub use patching_core::{
    CanRecordOutputs, ConfigDefaults, ModelOutput, capture_outputs, merge_with_config_defaults, module_class, replaces,
};

/// The README's code, compiled and run with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

/// The guide's program, likewise.
#[cfg(doctest)]
#[doc = include_str!("../docs/your-own-model.md")]
pub struct YourOwnModel;
