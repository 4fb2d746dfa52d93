//! How Whisper's decoder begins and what it may choose, after
//! [`generation_whisper.py`](https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/models/whisper/generation_whisper.py).

mod error;
mod generate;
mod languages;
mod prompt;
mod settings;
mod timestamps;
mod transcribe;

pub use error::SpeechError;
pub use transcribe::{Segment, Transcription, Window};

use settings::{Languages, Settings};
