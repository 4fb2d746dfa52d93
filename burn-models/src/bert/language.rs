use super::{BertConfig, BertModel, BertOnlyMLMHead, BertPreTrainingHeads};
use crate::auto::NamedInputs;
use crate::layers::{causal_lm_loss, classification_loss, token_loss};
use crate::models::{NextTokens, generates_text, model_head, no_encoder, with_fields};
use crate::{
    BertForPreTrainingOutput, CausalLMOutputWithCrossAttentions, ForwardError, Labels, MaskedLMOutput, TextInputs,
};
use burn::module::Module;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// What the head that predicts tokens has no parameters of its own for.
fn implied_ties(config: &BertConfig) -> Vec<(String, String)> {
    let pairs = [
        ("cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"),
        ("cls.predictions.decoder.bias", "cls.predictions.bias"),
    ];
    let pairs = pairs.into_iter().filter(|_| config.tie_word_embeddings);
    pairs.map(|(tied, source)| (tied.to_owned(), source.to_owned())).collect()
}

impl BertModel {
    /// The table of embeddings that the head predicts tokens with, if the config ties it.
    fn tied_table(&self) -> Result<Option<Tensor<2>>, ForwardError> {
        if !self.config().tie_word_embeddings {
            return Ok(None);
        }
        let absent = || ForwardError::Absent {
            model: self.config().general.model_type.clone(),
            name: "word_embeddings",
            because: " in what replaces `BertEmbeddings`, to predict tokens with (`tie_word_embeddings` in the config)",
        };
        self.word_embeddings().ok_or_else(absent).map(Some)
    }

    /// What stands for each sequence, `[batch, hidden]`.
    pub(super) fn pooled(&self, pooler_output: Option<Tensor<2>>) -> Result<Tensor<2>, ForwardError> {
        let model = || self.config().general.model_type.clone();
        pooler_output.ok_or_else(|| ForwardError::Absent { model: model(), name: "pooler", because: " for this head" })
    }
}

/// BERT as a language model that generates text, for a config with `is_decoder`.
#[derive(Module, Debug)]
pub struct BertLMHeadModel {
    /// The base model, without a pooler.
    pub bert: BertModel,
    /// What predicts tokens.
    pub cls: Slot<BertOnlyMLMHead>,
}

impl BertLMHeadModel {
    /// Fresh parameters.
    pub fn new(config: &BertConfig, init: &Init) -> Self {
        Self { bert: BertModel::without_pooler(config, init), cls: BertOnlyMLMHead::slot(config, init) }
    }

    /// Runs the model and computes logits, `[batch, positions kept, vocabulary]`. With labels, nothing is kept for a next
    /// call.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, or something that was asked
    /// for cannot be recorded.
    pub fn forward(
        &self,
        inputs: impl Into<TextInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<CausalLMOutputWithCrossAttentions, ForwardError> {
        let mut inputs = inputs.into();
        let (labels, logits_to_keep) = (inputs.labels.take(), std::mem::take(&mut inputs.logits_to_keep));
        let table = self.bert.tied_table()?;
        let mut base = match &labels {
            Some(_) => self.bert.forward(inputs, &kwargs.clone().use_cache(false))?,
            None => self.bert.forward(inputs, kwargs)?,
        };
        let cache = base.cache.take();
        NextTokens { base, cache, logits_to_keep, labels, loss: causal_lm_loss }
            .scored(|hidden_states| self.cls.forward(hidden_states, table))
    }
}

model_head! {
    BertLMHeadModel { bert: BertModel }(BertConfig): TextInputs => CausalLMOutputWithCrossAttentions;
    prefix: "bert",
    inputs: NamedInputs::TEXT_WITH_TYPES,
    generates: generate,
    pretrained: {
        fn implied_ties(config: &BertConfig) -> Vec<(String, String)> {
            implied_ties(config)
        }
    }
}

generates_text!(BertLMHeadModel => CausalLMOutputWithCrossAttentions);

/// BERT as a model that fills in hidden tokens.
#[derive(Module, Debug)]
pub struct BertForMaskedLM {
    /// The base model, without a pooler.
    pub bert: BertModel,
    /// What predicts tokens.
    pub cls: Slot<BertOnlyMLMHead>,
}

impl BertForMaskedLM {
    /// Fresh parameters.
    pub fn new(config: &BertConfig, init: &Init) -> Self {
        Self { bert: BertModel::without_pooler(config, init), cls: BertOnlyMLMHead::slot(config, init) }
    }

    /// Runs the model and computes logits, `[batch, seq, vocabulary]`. Labels stand where the tokens are expected.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, or something that was asked
    /// for cannot be recorded.
    pub fn forward(
        &self,
        inputs: impl Into<TextInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<MaskedLMOutput, ForwardError> {
        let mut inputs = inputs.into();
        let labels = inputs.labels.take();
        let table = self.bert.tied_table()?;
        let mut base = self.bert.forward(inputs, &with_fields::<BertModel, MaskedLMOutput>(kwargs))?;
        let logits = self.cls.forward(base.last_hidden_state.clone(), table);
        let mut output = MaskedLMOutput::new(logits.clone());
        output.loss = labels.map(|labels| token_loss(logits, labels)).transpose()?;
        base.pass_on(&mut output)?;
        Ok(output)
    }
}

model_head! {
    BertForMaskedLM { bert: BertModel }(BertConfig): TextInputs => MaskedLMOutput;
    prefix: "bert",
    inputs: NamedInputs::TEXT_WITH_TYPES,
    pretrained: {
        fn implied_ties(config: &BertConfig) -> Vec<(String, String)> {
            implied_ties(config)
        }
    }
}

/// BERT as it is pretrained: it fills in hidden tokens and tells whether a text follows another.
#[derive(Module, Debug)]
pub struct BertForPreTraining {
    /// The base model.
    pub bert: BertModel,
    /// Both heads.
    pub cls: Slot<BertPreTrainingHeads>,
}

impl BertForPreTraining {
    /// Fresh parameters.
    pub fn new(config: &BertConfig, init: &Init) -> Self {
        Self { bert: BertModel::new(config, init), cls: BertPreTrainingHeads::slot(config, init) }
    }

    /// Runs the model and computes the logits of both heads. Labels are [`TokensAndClasses`](Labels::TokensAndClasses).
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, or something that was asked
    /// for cannot be recorded.
    pub fn forward(
        &self,
        inputs: impl Into<TextInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<BertForPreTrainingOutput, ForwardError> {
        let mut inputs = inputs.into();
        let labels = inputs.labels.take();
        no_encoder(&self.config().general, &inputs)?;
        let table = self.bert.tied_table()?;
        let mut base = self.bert.forward(inputs, kwargs)?;
        let pooled = self.bert.pooled(base.pooler_output.take())?;
        let (tokens, sequences) = self.cls.forward(base.last_hidden_state.clone(), pooled, table);
        let mut output = BertForPreTrainingOutput::new(tokens.clone(), sequences.clone());
        output.loss = match labels {
            None => None,
            Some(Labels::TokensAndClasses { tokens: expected, classes }) => {
                let loss = token_loss(tokens, expected.into())?;
                Some(loss + classification_loss(sequences, classes.into(), Some("single_label_classification"))?)
            }
            Some(other) => {
                let expected = "tokens of shape [batch, seq] and classes of shape [batch]".to_owned();
                return Err(ForwardError::Labels { found: other.description(), expected });
            }
        };
        base.pass_on(&mut output)?;
        Ok(output)
    }
}

model_head! {
    BertForPreTraining { bert: BertModel }(BertConfig): TextInputs => BertForPreTrainingOutput;
    prefix: "bert",
    inputs: NamedInputs::TEXT_PAIRS,
    pretrained: {
        fn implied_ties(config: &BertConfig) -> Vec<(String, String)> {
            implied_ties(config)
        }
    }
}
