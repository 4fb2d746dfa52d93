use super::{BertConfig, BertModel, BertOnlyNSPHead};
use crate::auto::NamedInputs;
use crate::layers::{classification_loss, linear, new_linear};
use crate::models::{classify_tokens, mark_answers, model_head, no_encoder};
use crate::{ForwardError, QuestionAnsweringModelOutput, SequenceClassifierOutput, TextInputs, TokenClassifierOutput};
use burn::module::Module;
use burn::nn::Linear;
use patching_core::prelude::*;

fn classifier(config: &BertConfig, labels: usize, init: &Init) -> Linear {
    new_linear(config.hidden_size, labels, true, config.initializer_range, init.device())
}

/// BERT as a classifier of sequences.
#[derive(Module, Debug)]
pub struct BertForSequenceClassification {
    /// The base model.
    pub bert: BertModel,
    /// `[hidden, labels]`
    pub classifier: Linear,
}

impl BertForSequenceClassification {
    /// Fresh parameters.
    pub fn new(config: &BertConfig, init: &Init) -> Self {
        Self { bert: BertModel::new(config, init), classifier: classifier(config, config.general.num_labels(), init) }
    }

    /// Runs the model and scores each sequence, `[batch, labels]`.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, or something that was asked
    /// for cannot be recorded.
    pub fn forward(
        &self,
        inputs: impl Into<TextInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<SequenceClassifierOutput, ForwardError> {
        let mut inputs = inputs.into();
        let labels = inputs.labels.take();
        no_encoder(&self.config().general, &inputs)?;
        let mut base = self.bert.forward(inputs, kwargs)?;
        let logits = linear(&self.classifier, self.bert.pooled(base.pooler_output.take())?);
        let mut output = SequenceClassifierOutput::new(logits.clone());
        let problem = self.bert.config().general.problem_type.as_deref();
        output.loss = labels.map(|labels| classification_loss(logits, labels, problem)).transpose()?;
        base.pass_on(&mut output)?;
        Ok(output)
    }
}

model_head! {
    BertForSequenceClassification { bert: BertModel }(BertConfig): TextInputs => SequenceClassifierOutput;
    prefix: "bert",
    inputs: NamedInputs::TEXT_CLASSIFIED
}

/// BERT as a model that tells whether a text follows another.
#[derive(Module, Debug)]
pub struct BertForNextSentencePrediction {
    /// The base model.
    pub bert: BertModel,
    /// What tells.
    pub cls: Slot<BertOnlyNSPHead>,
}

impl BertForNextSentencePrediction {
    /// Fresh parameters.
    pub fn new(config: &BertConfig, init: &Init) -> Self {
        Self { bert: BertModel::new(config, init), cls: BertOnlyNSPHead::slot(config, init) }
    }

    /// Runs the model and scores each pair of texts, `[batch, 2]`: that the second follows, and that it does not. Labels
    /// are classes.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, or something that was asked
    /// for cannot be recorded.
    pub fn forward(
        &self,
        inputs: impl Into<TextInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<SequenceClassifierOutput, ForwardError> {
        let mut inputs = inputs.into();
        let labels = inputs.labels.take();
        no_encoder(&self.config().general, &inputs)?;
        let mut base = self.bert.forward(inputs, kwargs)?;
        let logits = self.cls.forward(self.bert.pooled(base.pooler_output.take())?);
        let mut output = SequenceClassifierOutput::new(logits.clone());
        let loss = |labels| classification_loss(logits, labels, Some("single_label_classification"));
        output.loss = labels.map(loss).transpose()?;
        base.pass_on(&mut output)?;
        Ok(output)
    }
}

model_head! {
    BertForNextSentencePrediction { bert: BertModel }(BertConfig): TextInputs => SequenceClassifierOutput;
    prefix: "bert",
    inputs: NamedInputs::TEXT_CLASSIFIED
}

/// BERT as a classifier of tokens.
#[derive(Module, Debug)]
pub struct BertForTokenClassification {
    /// The base model, without a pooler.
    pub bert: BertModel,
    /// `[hidden, labels]`
    pub classifier: Linear,
}

impl BertForTokenClassification {
    /// Fresh parameters.
    pub fn new(config: &BertConfig, init: &Init) -> Self {
        let labels = config.general.num_labels();
        Self { bert: BertModel::without_pooler(config, init), classifier: classifier(config, labels, init) }
    }

    /// Runs the model and scores each token, `[batch, seq, labels]`. Labels stand where they are expected, as
    /// [`Tokens`](crate::Labels::Tokens).
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, or something that was asked
    /// for cannot be recorded.
    pub fn forward(
        &self,
        inputs: impl Into<TextInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<TokenClassifierOutput, ForwardError> {
        let inputs = inputs.into();
        no_encoder(&self.config().general, &inputs)?;
        classify_tokens(&self.bert, &self.classifier, inputs, kwargs)
    }
}

model_head! {
    BertForTokenClassification { bert: BertModel }(BertConfig): TextInputs => TokenClassifierOutput;
    prefix: "bert",
    inputs: NamedInputs::TEXT_CLASSIFIED
}

/// BERT as a model that marks the answer to a question in a text.
#[derive(Module, Debug)]
pub struct BertForQuestionAnswering {
    /// The base model, without a pooler.
    pub bert: BertModel,
    /// `[hidden, 2]`
    pub qa_outputs: Linear,
}

impl BertForQuestionAnswering {
    /// Fresh parameters.
    pub fn new(config: &BertConfig, init: &Init) -> Self {
        let labels = config.general.num_labels();
        Self { bert: BertModel::without_pooler(config, init), qa_outputs: classifier(config, labels, init) }
    }

    /// Runs the model and scores each token as the first and as the last of the answer, `[batch, seq]` both. Labels are
    /// [`Spans`](crate::Labels::Spans).
    ///
    /// # Errors
    ///
    /// When the config has another number of labels than 2, the inputs do not fit, the config names an implementation
    /// that is not registered, or something that was asked for cannot be recorded.
    pub fn forward(
        &self,
        inputs: impl Into<TextInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<QuestionAnsweringModelOutput, ForwardError> {
        let inputs = inputs.into();
        no_encoder(&self.config().general, &inputs)?;
        mark_answers(&self.bert, &self.qa_outputs, inputs, kwargs)
    }
}

model_head! {
    BertForQuestionAnswering { bert: BertModel }(BertConfig): TextInputs => QuestionAnsweringModelOutput;
    prefix: "bert",
    inputs: NamedInputs::TEXT_WITH_ANSWERS
}
