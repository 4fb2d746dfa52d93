//! LLaVA: a vision tower whose features take the place of tokens in what a language model reads.
//!
//! After [`modeling_llava.py`](https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/models/llava/modeling_llava.py)
//! of Transformers, with CLIP's vision tower and Llama as the language model.

mod config;
mod conversion;
mod generation;
mod heads;
mod inputs;
mod model;
mod outputs;
mod projector;

pub use config::LlavaConfig;
pub use generation::LlavaWithImages;
pub use heads::LlavaForConditionalGeneration;
pub use inputs::LlavaInputs;
pub use model::LlavaModel;
pub use outputs::{LlavaCausalLMOutputWithPast, LlavaModelOutputWithPast};
pub use projector::LlavaMultiModalProjector;
