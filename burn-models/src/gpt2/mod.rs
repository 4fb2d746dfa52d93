//! GPT-2: learned positions, queries, keys and values in one projection, a norm before each block.
//!
//! After [`modeling_gpt2.py`](https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/models/gpt2/modeling_gpt2.py)
//! of Transformers.

mod attention;
mod classifiers;
mod config;
mod language;
mod layer;
mod layouts;
mod mlp;
mod model;

pub use attention::GPT2Attention;
pub use classifiers::{GPT2ForQuestionAnswering, GPT2ForSequenceClassification, GPT2ForTokenClassification};
pub use config::GPT2Config;
pub use language::GPT2LMHeadModel;
pub use layer::GPT2Block;
pub use mlp::GPT2MLP;
pub use model::GPT2Model;
