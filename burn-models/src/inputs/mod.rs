//! What models are given.

mod image;
mod seq2seq;
mod speech;
mod text;

pub use image::{PixelInputs, TextImageInputs};
pub use seq2seq::Seq2SeqInputs;
pub use speech::SpeechInputs;
pub use text::{Labels, LogitsToKeep, TextInputs};
