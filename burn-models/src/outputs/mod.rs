//! What models give, each struct as the reference's of the same name.

mod decoder;
mod encoder;
mod heads;
mod image;
mod seq2seq;

use crate::layers::Cache;
use patching_core::capture::OutputValue;
use patching_core::prelude::*;

pub(crate) use decoder::language_model_output;
pub(crate) use encoder::hidden_state_output;

pub use decoder::{
    BaseModelOutputWithPast, CausalLMOutputWithPast, LanguageModelOutput, MoeCausalLMOutputWithPast,
    MoeModelOutputWithPast, MoeSequenceClassifierOutputWithPast, SequenceClassifierOutputWithPast,
};
pub use encoder::{
    BaseModelOutput, BaseModelOutputWithPastAndCrossAttentions, BaseModelOutputWithPooling,
    BaseModelOutputWithPoolingAndCrossAttentions, HiddenStateOutput,
};
pub use heads::{
    BertForPreTrainingOutput, CausalLMOutputWithCrossAttentions, ImageClassifierOutput, MaskedLMOutput,
    QuestionAnsweringModelOutput, SequenceClassifierOutput, TokenClassifierOutput,
};
pub use image::ImageOutputs;
pub use seq2seq::{
    Seq2SeqLMOutput, Seq2SeqModelOutput, Seq2SeqQuestionAnsweringModelOutput, Seq2SeqSequenceClassifierOutput,
};

#[diagnostic::do_not_recommend]
impl OutputField for Cache {
    fn output_value(&self) -> Option<OutputValue> {
        Some(OutputValue::Opaque("Cache"))
    }
}
