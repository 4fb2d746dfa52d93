//! Loading by what a checkpoint says it is: the family by `model_type`, the head by the caller or by `architectures`.
//!
//! | | the family | the head | inputs | output |
//! | --- | --- | --- | --- | --- |
//! | [`AnyModel`] | any: the checkpoint says | the checkpoint says, or a [`ModelClass`] | [`NamedInputs`] | a tuple of what is present |
//! | [`AutoModel`] and its siblings | a text model: the checkpoint says | the type says | [`TextInputs`](crate::TextInputs) | [`AutoModelOutput`], … |
//!
//! Registered patches apply to all of them, or a set of patches that is given. What is loaded is a Burn module.
//!
//! ```
//! # #[cfg(feature = "flex")] {
//! use burn::tensor::{Device, Int, Tensor};
//! use burn_models::auto::AutoModelForCausalLM;
//! use burn_models::qwen3::Qwen3Attention;
//! use patching_core::class::slots;
//! use patching_core::prelude::*;
//!
//! let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/qwen3");
//! let model = AutoModelForCausalLM::from_pretrained(folder, &Device::flex())?;
//! assert_eq!(model.class_name(), "Qwen3ForCausalLM");
//! assert_eq!(slots::<Qwen3Attention, _>(&model)[0].0, "model.layers.0.self_attn");
//!
//! let input_ids = Tensor::<2, Int>::from_data([[1, 7, 9]], &Device::flex());
//! let output = model.forward(input_ids, &ForwardKwargs::new().output_attentions([0]))?;
//! assert_eq!(output.attentions().at(0)?.dims()[3], 3);
//! // for what only this family has
//! let AutoModelForCausalLM::Qwen3(_model) = model else { panic!("a Qwen3") };
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod any;
mod arguments;
mod class;
mod erased;
mod error;
mod models;
mod module;
mod named;
mod outputs;
mod select;

pub use any::{AnyModel, RunError};
pub use arguments::{Arguments, NamedArguments};
pub use class::ModelClass;
pub use error::AutoError;
pub use models::{AutoModel, AutoModelForCausalLM, AutoModelForSequenceClassification};
pub use named::{InputError, NamedInputs};
pub use outputs::{AutoCausalLMOutput, AutoModelOutput, AutoSequenceClassifierOutput};
pub use select::Family;

pub(crate) use class::model_class;
