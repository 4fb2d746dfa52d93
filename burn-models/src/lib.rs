//! Transformer models on Burn that record every intermediate value and load Hugging Face checkpoints.
//!
//! A folder for each family; what families share lives once in [`layers`]. Configs are in [`config`], text generation
//! in [`generation`], and loading by what a checkpoint says it is in [`auto`].
//!
//! ```
//! # #[cfg(feature = "flex")] {
//! use burn::tensor::{Device, Int, Tensor};
//! use burn_models::generation::GenerationConfig;
//! use burn_models::llama::{LlamaConfig, LlamaForCausalLM};
//! use patching_core::prelude::*;
//!
//! let config = LlamaConfig {
//!     vocab_size: 50,
//!     hidden_size: 16,
//!     intermediate_size: 32,
//!     num_hidden_layers: 2,
//!     num_attention_heads: 4,
//!     eos_token_id: None,
//!     ..LlamaConfig::default()
//! };
//! // `LlamaForCausalLM::from_pretrained(folder, &device)` for weights that mean something.
//! let model = LlamaForCausalLM::new(&config, &Init::new(&Device::flex()));
//!
//! let input_ids = Tensor::<2, Int>::from_data([[1, 7, 9, 3]], &Device::flex());
//! let kwargs = ForwardKwargs::new().output_hidden_states(true).output_attentions([-1]);
//! let output = model.forward(input_ids.clone(), &kwargs)?;
//! assert_eq!(output.hidden_states.len(), 3);
//! assert_eq!(output.attentions.at(-1)?.dims(), [1, 4, 4, 4]);
//!
//! let generated = model.generate(input_ids, &GenerationConfig::greedy(5), &ForwardKwargs::new())?;
//! assert_eq!(generated.sequences.dims(), [1, 9]);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod audio;
pub mod auto;
pub mod bert;
pub mod clip;
pub mod config;
pub mod dinov2;
mod error;
pub mod generation;
pub mod gpt2;
mod inputs;
pub mod layers;
pub mod llama;
pub mod llava;
pub mod mistral;
pub mod mixtral;
pub mod models;
mod outputs;
pub mod qwen2;
pub mod qwen2_moe;
pub mod qwen3;
pub mod routing;
pub mod t5;
pub mod vit;
pub mod whisper;

pub use error::{ForwardError, did_you_mean};
pub use inputs::{Labels, LogitsToKeep, PixelInputs, Seq2SeqInputs, SpeechInputs, TextImageInputs, TextInputs};
pub use outputs::{
    BaseModelOutput, BaseModelOutputWithPast, BaseModelOutputWithPastAndCrossAttentions, BaseModelOutputWithPooling,
    BaseModelOutputWithPoolingAndCrossAttentions, BertForPreTrainingOutput, CausalLMOutputWithCrossAttentions,
    CausalLMOutputWithPast, HiddenStateOutput, ImageClassifierOutput, ImageOutputs, LanguageModelOutput,
    MaskedLMOutput, MoeCausalLMOutputWithPast, MoeModelOutputWithPast, MoeSequenceClassifierOutputWithPast,
    QuestionAnsweringModelOutput, Seq2SeqLMOutput, Seq2SeqModelOutput, Seq2SeqQuestionAnsweringModelOutput,
    Seq2SeqSequenceClassifierOutput, SequenceClassifierOutput, SequenceClassifierOutputWithPast, TokenClassifierOutput,
};
