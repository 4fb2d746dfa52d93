use super::model::{SHARING, shared, stacks, ties, untied};
use super::{T5Config, T5EncoderModel, T5Model, T5Stack};
use crate::auto::NamedInputs;
use crate::error::ForwardError;
use crate::inputs::{Seq2SeqInputs, TextInputs};
use crate::layers::{classification_loss, last_of, linear, new_linear, span_logits, span_loss};
use crate::models::{EncoderDecoder, begun_with, classify_tokens, encode_decode, encoder_decoder, model_head};
use crate::outputs::{Seq2SeqQuestionAnsweringModelOutput, Seq2SeqSequenceClassifierOutput, TokenClassifierOutput};
use burn::module::Module;
use burn::nn::{Embedding, Linear};
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// The arguments of a model that marks the answer to a question.
const QUESTION: &[&str] = &[
    "input_ids",
    "attention_mask",
    "inputs_embeds",
    "decoder_input_ids",
    "decoder_attention_mask",
    "decoder_inputs_embeds",
    "start_positions",
    "end_positions",
];

/// T5's classifier of what stands for a sequence.
#[derive(Module, Debug)]
pub struct T5ClassificationHead {
    /// `[hidden, hidden]`
    pub dense: Linear,
    /// `[hidden, labels]`
    pub out_proj: Linear,
}

#[module_class]
impl T5ClassificationHead {
    /// Fresh parameters.
    pub fn new(config: &T5Config, init: &Init) -> Self {
        let (size, std) = (config.d_model, config.std_of(config.d_model));
        Self {
            dense: new_linear(size, size, true, std, init.device()),
            out_proj: new_linear(size, config.general.num_labels(), true, std, init.device()),
        }
    }

    /// `[batch, hidden]` to `[batch, labels]`.
    pub fn forward(&self, hidden_states: Tensor<2>) -> Tensor<2> {
        linear(&self.out_proj, linear(&self.dense, hidden_states).tanh())
    }
}

/// T5 as a classifier of sequences: by the decoder's hidden state at the last token that ends the text.
#[derive(Module, Debug)]
pub struct T5ForSequenceClassification {
    /// The base model.
    pub transformer: T5Model,
    /// The classifier.
    pub classification_head: Slot<T5ClassificationHead>,
}

impl T5ForSequenceClassification {
    /// Fresh parameters.
    pub fn new(config: &T5Config, init: &Init) -> Self {
        Self { transformer: T5Model::new(config, init), classification_head: T5ClassificationHead::slot(config, init) }
    }

    /// Runs the model and scores each sequence, `[batch, labels]`. The decoder reads the text once more, unless tokens are
    /// given for it.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit or a text has not as many ending tokens as the others, the config names an
    /// implementation that is not registered, or something that was asked for cannot be recorded.
    pub fn forward(
        &self,
        inputs: impl Into<Seq2SeqInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<Seq2SeqSequenceClassifierOutput, ForwardError> {
        let mut inputs = inputs.into();
        let config = &self.transformer.config;
        let labels = inputs.decoder.labels.take();
        let ids = inputs.source.as_ref().and_then(|source| source.input_ids.clone());
        let ids = ids.ok_or_else(|| absent("input_ids", ": nothing else says where texts end"))?;
        read_again(self, &mut inputs)?;
        let mut model = encode_decode(self, inputs, &without_cache(kwargs, labels.is_some()))?;
        let eos = config.eos_token_id.as_ref().and_then(|ids| ids.first());
        let eos = eos.ok_or_else(|| absent("eos_token_id", " in the config, to find where texts end"))?;
        let of_sequence = last_of(model.last_hidden_state.clone(), &ids, eos)?;
        let logits = self.classification_head.forward(of_sequence);
        let mut output = Seq2SeqSequenceClassifierOutput::new(logits.clone());
        let problem = config.general.problem_type.as_deref();
        output.loss = labels.map(|labels| classification_loss(logits, labels, problem)).transpose()?;
        output.cache = model.cache.take();
        output.encoder_last_hidden_state = model.encoder_last_hidden_state.take();
        model.pass_on(&mut output)?;
        Ok(output)
    }
}

/// T5 that marks the answer to a question in a text.
#[derive(Module, Debug)]
pub struct T5ForQuestionAnswering {
    /// The embedding of both, `[vocabulary, hidden]`.
    pub shared: Embedding,
    /// The encoder.
    pub encoder: T5Stack,
    /// The decoder.
    pub decoder: T5Stack,
    /// `[hidden, 2]`
    pub qa_outputs: Linear,
    #[module(skip)]
    config: T5Config,
}

impl T5ForQuestionAnswering {
    /// Fresh parameters.
    pub fn new(config: &T5Config, init: &Init) -> Self {
        let [encoder, decoder] = stacks(config, init);
        let std = config.std_of(config.d_model);
        let qa_outputs = new_linear(config.d_model, config.general.num_labels(), true, std, init.device());
        Self { shared: shared(config, init), encoder, decoder, qa_outputs, config: config.clone() }
    }

    /// Runs the model and scores each token, `[batch, seq]`, as the first and as the last of the answer. The decoder reads
    /// the text once more, unless tokens are given for it. Labels are [`Spans`](crate::Labels::Spans).
    ///
    /// # Errors
    ///
    /// When the config has another number of labels than 2, the inputs do not fit, the config names an implementation
    /// that is not registered, or something that was asked for cannot be recorded.
    pub fn forward(
        &self,
        inputs: impl Into<Seq2SeqInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<Seq2SeqQuestionAnsweringModelOutput, ForwardError> {
        let mut inputs = inputs.into();
        if inputs.decoder.cache.is_some() {
            return Err(ForwardError::Unused {
                model: T5Config::MODEL_TYPE.to_owned(),
                name: "cache",
                because: ": it reads a text at once",
            });
        }
        let labels = inputs.decoder.labels.take();
        read_again(self, &mut inputs)?;
        let mut model = encode_decode(self, inputs, &without_cache(kwargs, labels.is_some()))?;
        let [start, end] = span_logits(&self.qa_outputs, model.last_hidden_state.clone())?;
        let mut output = Seq2SeqQuestionAnsweringModelOutput::new(start.clone(), end.clone());
        output.loss = labels.map(|labels| span_loss(start, end, labels)).transpose()?;
        output.cache = model.cache.take();
        output.encoder_last_hidden_state = model.encoder_last_hidden_state.take();
        model.pass_on(&mut output)?;
        Ok(output)
    }
}

/// T5's encoder as a classifier of tokens.
#[derive(Module, Debug)]
pub struct T5ForTokenClassification {
    /// The encoder.
    pub transformer: T5EncoderModel,
    /// `[hidden, labels]`
    pub classifier: Linear,
}

impl T5ForTokenClassification {
    /// Fresh parameters.
    pub fn new(config: &T5Config, init: &Init) -> Self {
        let labels = config.general.num_labels();
        Self {
            transformer: T5EncoderModel::new(config, init),
            classifier: new_linear(config.d_model, labels, true, config.initializer_factor, init.device()),
        }
    }

    /// Runs the encoder and scores each token, `[batch, seq, labels]`.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, or something that was
    /// asked for cannot be recorded.
    pub fn forward(
        &self,
        inputs: impl Into<TextInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<TokenClassifierOutput, ForwardError> {
        classify_tokens(&self.transformer, &self.classifier, inputs.into(), kwargs)
    }
}

/// Makes the decoder read the encoder's tokens after the start token, if it is given nothing else.
fn read_again<M: EncoderDecoder<Encoder = T5Stack>>(model: &M, inputs: &mut Seq2SeqInputs) -> Result<(), ForwardError> {
    let decoder = &mut inputs.decoder;
    if decoder.input_ids.is_none() && decoder.inputs_embeds.is_none() {
        let ids = inputs.source.as_ref().and_then(|source| source.input_ids.as_ref());
        let ids = ids.ok_or_else(|| absent("input_ids", " or `decoder_input_ids`"))?;
        decoder.input_ids = Some(begun_with(model, ids)?);
    }
    Ok(())
}

/// A call with labels has no next one.
fn without_cache(kwargs: &ForwardKwargs, has_labels: bool) -> ForwardKwargs {
    let use_cache = kwargs.get_use_cache();
    kwargs.clone().use_cache(if has_labels { Some(false) } else { use_cache })
}

fn absent(name: &'static str, because: &'static str) -> ForwardError {
    ForwardError::Absent { model: T5Config::MODEL_TYPE.to_owned(), name, because }
}

encoder_decoder! {
    T5ForSequenceClassification(T5Config at transformer.config) => Seq2SeqSequenceClassifierOutput;
    encoder: T5Stack at transformer.encoder,
    decoder: T5Stack at transformer.decoder,
    prefix: "transformer",
    is_base: false,
    inputs: NamedInputs::TEXT_TO_TEXT,
    source_mask: |source| source.attention_mask.clone(),
    embedding: transformer.shared,
    pretrained: {
        fn implied_ties(config: &T5Config) -> Vec<(String, String)> {
            ties(config, "transformer.", &SHARING[..2])
        }

        fn untied(config: &T5Config, key: &str) -> Option<T5Config> {
            untied(config, key)
        }
    }
}

encoder_decoder! {
    T5ForQuestionAnswering(T5Config at config) => Seq2SeqQuestionAnsweringModelOutput;
    encoder: T5Stack at encoder,
    decoder: T5Stack at decoder,
    prefix: "transformer",
    is_base: false,
    inputs: QUESTION,
    source_mask: |source| source.attention_mask.clone(),
    embedding: shared,
    pretrained: {
        fn implied_ties(config: &T5Config) -> Vec<(String, String)> {
            ties(config, "", &SHARING[..2])
        }

        fn untied(config: &T5Config, key: &str) -> Option<T5Config> {
            untied(config, key)
        }
    }
}

model_head! {
    T5ForTokenClassification { transformer: T5EncoderModel }(T5Config): TextInputs => TokenClassifierOutput;
    prefix: "transformer",
    inputs: &["input_ids", "attention_mask", "inputs_embeds", "labels"],
    pretrained: {
        fn implied_ties(config: &T5Config) -> Vec<(String, String)> {
            ties(config, "transformer.", &SHARING[..1])
        }

        fn untied(config: &T5Config, key: &str) -> Option<T5Config> {
            untied(config, key)
        }
    }
}
