//! BERT: learned positions and token types, a norm after each block; an encoder, or a decoder that may look at another
//! encoder.
//!
//! After [`modeling_bert.py`](https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/models/bert/modeling_bert.py)
//! of Transformers.

mod attention;
mod classifiers;
mod config;
mod conversion;
mod embeddings;
mod language;
mod layer;
mod model;
mod predictions;

pub use attention::{BertAttendsTo, BertAttention, BertCrossAttention, BertSelfAttention, BertSelfOutput};
pub use classifiers::{
    BertForNextSentencePrediction, BertForQuestionAnswering, BertForSequenceClassification, BertForTokenClassification,
};
pub use config::BertConfig;
pub use embeddings::BertEmbeddings;
pub use language::{BertForMaskedLM, BertForPreTraining, BertLMHeadModel};
pub use layer::{BertIntermediate, BertLayer, BertOutput};
pub use model::{BertEncoder, BertModel, BertPooler};
pub use predictions::{
    BertLMPredictionHead, BertOnlyMLMHead, BertOnlyNSPHead, BertPreTrainingHeads, BertPredictionHeadTransform,
};
