//! T5: an encoder and a decoder whose attention sees positions by their distance, norms by the root mean square, no
//! biases, and one embedding for the encoder, the decoder and the language model head.
//!
//! After [`modeling_t5.py`](https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/models/t5/modeling_t5.py)
//! of Transformers.

mod attention;
mod block;
mod classifiers;
mod config;
mod encoder;
mod feed_forward;
mod generation;
mod model;
mod projection;
mod stack;

pub use attention::{T5Attention, T5LayerCrossAttention, T5LayerSelfAttention};
pub use block::{T5Block, T5BlockPart};
pub use classifiers::{
    T5ClassificationHead, T5ForQuestionAnswering, T5ForSequenceClassification, T5ForTokenClassification,
};
pub use config::{T5Config, T5Untied};
pub use encoder::T5EncoderModel;
pub use feed_forward::{T5Dense, T5DenseActDense, T5DenseGatedActDense, T5LayerFF};
pub use generation::T5ForConditionalGeneration;
pub use model::T5Model;
pub use projection::T5FeedForwardProj;
pub use stack::{T5LayerNorm, T5Stack};
