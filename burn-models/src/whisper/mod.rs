//! Whisper: an encoder of spectrograms, and a decoder that writes down what was said.
//!
//! After [`modeling_whisper.py`](https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/models/whisper/modeling_whisper.py)
//! and [`generation_whisper.py`](https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/models/whisper/generation_whisper.py)
//! of Transformers.

mod attention;
mod config;
mod decoder;
mod encoder;
mod generation;
mod heads;
mod layer;
mod model;
mod positions;

pub use attention::WhisperAttention;
pub use config::WhisperConfig;
pub use decoder::WhisperDecoder;
pub use encoder::WhisperEncoder;
pub use generation::{Segment, SpeechError, Transcription, Window};
pub use heads::{
    WhisperDecoderWrapper, WhisperForAudioClassification, WhisperForCausalLM, WhisperForConditionalGeneration,
};
pub use layer::{WhisperDecoderLayer, WhisperEncoderLayer};
pub use model::WhisperModel;
pub use positions::WhisperPositionalEmbedding;
