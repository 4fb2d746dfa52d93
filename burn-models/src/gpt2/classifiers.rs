use super::layouts::layouts;
use super::{GPT2Config, GPT2Model};
use crate::auto::NamedInputs;
use crate::layers::{Pooled, classification_loss, last_tokens, linear, new_linear};
use crate::models::{classify_tokens, mark_answers, model_head, no_encoder};
use crate::{
    ForwardError, QuestionAnsweringModelOutput, SequenceClassifierOutputWithPast, TextInputs, TokenClassifierOutput,
};
use burn::module::Module;
use burn::nn::Linear;
use patching_core::prelude::*;
use patching_core::weights::LayoutRules;

fn classifier(config: &GPT2Config, labels: usize, bias: bool, init: &Init) -> Linear {
    new_linear(config.n_embd, labels, bias, config.initializer_range, init.device())
}

/// GPT-2 as a classifier of sequences.
#[derive(Module, Debug)]
pub struct GPT2ForSequenceClassification {
    /// The base model.
    pub transformer: GPT2Model,
    /// `[hidden, labels]`
    pub score: Linear,
}

impl GPT2ForSequenceClassification {
    /// Fresh parameters.
    pub fn new(config: &GPT2Config, init: &Init) -> Self {
        let labels = config.general.num_labels();
        Self { transformer: GPT2Model::new(config, init), score: classifier(config, labels, false, init) }
    }

    /// Runs the model and scores each sequence by its last token that is not padding, `[batch, labels]`.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, or something that was asked
    /// for cannot be recorded.
    pub fn forward(
        &self,
        inputs: impl Into<TextInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<SequenceClassifierOutputWithPast, ForwardError> {
        let (mut inputs, config) = (inputs.into(), self.config());
        let (labels, input_ids) = (inputs.labels.take(), inputs.input_ids.clone());
        no_encoder(&config.general, &inputs)?;
        let mut base = self.transformer.forward(inputs, kwargs)?;
        let by = Pooled { input_ids: input_ids.as_ref(), pad_token_id: config.pad_token_id };
        let logits = linear(&self.score, last_tokens(base.last_hidden_state.clone(), by)?);
        let mut output = SequenceClassifierOutputWithPast::new(logits.clone());
        let problem = config.general.problem_type.as_deref();
        output.loss = labels.map(|labels| classification_loss(logits, labels, problem)).transpose()?;
        output.cache = base.cache.take();
        base.pass_on(&mut output)?;
        Ok(output)
    }
}

model_head! {
    GPT2ForSequenceClassification { transformer: GPT2Model }(GPT2Config): TextInputs => SequenceClassifierOutputWithPast;
    prefix: "transformer",
    inputs: NamedInputs::TEXT_CLASSIFIED,
    pretrained: {
        fn layouts(_config: &GPT2Config) -> LayoutRules {
            layouts()
        }
    }
}

/// GPT-2 as a classifier of tokens.
#[derive(Module, Debug)]
pub struct GPT2ForTokenClassification {
    /// The base model.
    pub transformer: GPT2Model,
    /// `[hidden, labels]`
    pub classifier: Linear,
}

impl GPT2ForTokenClassification {
    /// Fresh parameters.
    pub fn new(config: &GPT2Config, init: &Init) -> Self {
        let labels = config.general.num_labels();
        Self { transformer: GPT2Model::new(config, init), classifier: classifier(config, labels, true, init) }
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
        classify_tokens(&self.transformer, &self.classifier, inputs, kwargs)
    }
}

model_head! {
    GPT2ForTokenClassification { transformer: GPT2Model }(GPT2Config): TextInputs => TokenClassifierOutput;
    prefix: "transformer",
    inputs: NamedInputs::TEXT_CLASSIFIED,
    pretrained: {
        fn layouts(_config: &GPT2Config) -> LayoutRules {
            layouts()
        }
    }
}

/// GPT-2 as a model that marks the answer to a question in a text.
#[derive(Module, Debug)]
pub struct GPT2ForQuestionAnswering {
    /// The base model.
    pub transformer: GPT2Model,
    /// `[hidden, 2]`
    pub qa_outputs: Linear,
}

impl GPT2ForQuestionAnswering {
    /// Fresh parameters.
    pub fn new(config: &GPT2Config, init: &Init) -> Self {
        Self { transformer: GPT2Model::new(config, init), qa_outputs: classifier(config, 2, true, init) }
    }

    /// Runs the model and scores each token as the first and as the last of the answer, `[batch, seq]` both. Labels are
    /// [`Spans`](crate::Labels::Spans).
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, or something that was asked
    /// for cannot be recorded.
    pub fn forward(
        &self,
        inputs: impl Into<TextInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<QuestionAnsweringModelOutput, ForwardError> {
        let inputs = inputs.into();
        no_encoder(&self.config().general, &inputs)?;
        mark_answers(&self.transformer, &self.qa_outputs, inputs, kwargs)
    }
}

model_head! {
    GPT2ForQuestionAnswering { transformer: GPT2Model }(GPT2Config): TextInputs => QuestionAnsweringModelOutput;
    prefix: "transformer",
    inputs: NamedInputs::TEXT_WITH_ANSWERS,
    pretrained: {
        fn layouts(_config: &GPT2Config) -> LayoutRules {
            layouts()
        }
    }
}
