use super::{WhisperConfig, WhisperDecoder, WhisperEncoder, WhisperModel};
use crate::auto::NamedInputs;
use crate::error::ForwardError;
use crate::inputs::{Seq2SeqInputs, SpeechInputs, TextInputs};
use crate::layers::{classification_loss, linear, lm_logits, new_linear, token_loss};
use crate::models::{
    NextTokens, ScoredTokens, Seq2SeqLM, encode_decode, encoder_decoder, generates_text, model_head, score_tokens,
};
use crate::outputs::{BaseModelOutput, CausalLMOutputWithCrossAttentions, Seq2SeqLMOutput, SequenceClassifierOutput};
use burn::module::{Initializer, Module, Param};
use burn::nn::Linear;
use burn::tensor::{Tensor, activation};
use patching_core::prelude::*;

/// Whisper as a model that writes down or translates speech.
#[derive(Module, Debug)]
pub struct WhisperForConditionalGeneration {
    /// The base model.
    pub model: WhisperModel,
    /// `[hidden, vocabulary]`; none where the config ties it to the embedding.
    pub proj_out: Option<Linear>,
}

impl WhisperForConditionalGeneration {
    /// Fresh parameters.
    pub fn new(config: &WhisperConfig, init: &Init) -> Self {
        Self { model: WhisperModel::new(config, init), proj_out: new_projection(config, init) }
    }

    /// Runs the model and computes logits, `[batch, positions kept, vocabulary]`.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, or something that was
    /// asked for cannot be recorded.
    pub fn forward(
        &self,
        inputs: impl Into<Seq2SeqInputs<SpeechInputs>>,
        kwargs: &ForwardKwargs,
    ) -> Result<Seq2SeqLMOutput, ForwardError> {
        let mut inputs = inputs.into();
        let scored = ScoredTokens::of(&mut inputs.decoder);
        let output = encode_decode(&self.model, inputs, kwargs)?;
        let table = &self.model.decoder.embed_tokens;
        score_tokens(output, scored, |hidden| lm_logits(self.proj_out.as_ref(), table, hidden))
    }
}

/// The head's own weight, unless the config ties it to the embedding.
fn new_projection(config: &WhisperConfig, init: &Init) -> Option<Linear> {
    let own = || new_linear(config.d_model, config.vocab_size, false, config.init_std, init.device());
    (!config.tie_word_embeddings).then(own)
}

/// What a tied head has no parameter for.
fn implied_ties(config: &WhisperConfig) -> Vec<(String, String)> {
    let tie = ("proj_out.weight".to_owned(), "model.decoder.embed_tokens.weight".to_owned());
    config.tie_word_embeddings.then_some(tie).into_iter().collect()
}

encoder_decoder! {
    WhisperForConditionalGeneration(WhisperConfig at model.config) => Seq2SeqLMOutput;
    encoder: WhisperEncoder at model.encoder,
    decoder: WhisperDecoder at model.decoder,
    prefix: "model",
    is_base: false,
    inputs: NamedInputs::SPEECH_TO_TEXT,
    source_mask: |_source| None,
    generates: generate,
    pretrained: {
        fn implied_ties(config: &WhisperConfig) -> Vec<(String, String)> {
            implied_ties(config)
        }
    }
}
impl Seq2SeqLM for WhisperForConditionalGeneration {
    // a prompt may begin with an earlier text
    const BEGINS_WITH_START: bool = false;

    fn forward_seq2seq(
        &self,
        inputs: Seq2SeqInputs<SpeechInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<Seq2SeqLMOutput, ForwardError> {
        self.forward(inputs, kwargs)
    }
}

/// Whisper's decoder alone, where a language model's checkpoint has it.
#[derive(Module, Debug)]
pub struct WhisperDecoderWrapper {
    /// The decoder.
    pub decoder: WhisperDecoder,
}

/// Whisper's decoder as a language model, which may look at what an encoder gave.
#[derive(Module, Debug)]
pub struct WhisperForCausalLM {
    /// The base model.
    pub model: WhisperDecoderWrapper,
    /// `[hidden, vocabulary]`; none where the config ties it to the embedding.
    pub proj_out: Option<Linear>,
}

impl WhisperForCausalLM {
    /// Fresh parameters.
    pub fn new(config: &WhisperConfig, init: &Init) -> Self {
        let model = WhisperDecoderWrapper { decoder: WhisperDecoder::new(config, init) };
        Self { model, proj_out: new_projection(config, init) }
    }

    /// Runs the decoder and computes logits, `[batch, positions kept, vocabulary]`. Labels stand where the tokens are
    /// expected: they are not shifted inside.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, or something that was
    /// asked for cannot be recorded.
    pub fn forward(
        &self,
        inputs: impl Into<TextInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<CausalLMOutputWithCrossAttentions, ForwardError> {
        let mut inputs = inputs.into();
        let (labels, logits_to_keep) = (inputs.labels.take(), std::mem::take(&mut inputs.logits_to_keep));
        let decoder = &self.model.decoder;
        let mut base = decoder.forward(inputs, kwargs)?;
        let cache = base.cache.take();
        NextTokens { base, cache, logits_to_keep, labels, loss: token_loss }
            .scored(|hidden_states| lm_logits(self.proj_out.as_ref(), &decoder.embed_tokens, hidden_states))
    }
}

generates_text!(WhisperForCausalLM => CausalLMOutputWithCrossAttentions);

model_head! {
    WhisperForCausalLM { model.decoder: WhisperDecoder }(WhisperConfig):
        TextInputs => CausalLMOutputWithCrossAttentions;
    prefix: "model",
    inputs: &["input_ids", "attention_mask", "position_ids", "inputs_embeds", "encoder_hidden_states", "labels"],
    generates: generate,
    pretrained: {
        fn implied_ties(config: &WhisperConfig) -> Vec<(String, String)> {
            implied_ties(config)
        }
    }
}

/// Whisper's encoder as a classifier of speech.
#[derive(Module, Debug)]
pub struct WhisperForAudioClassification {
    /// The base model.
    pub encoder: WhisperEncoder,
    /// How much each hidden state counts before softmax, `[layers + 1]`; none where only the last one is read.
    pub layer_weights: Option<Param<Tensor<1>>>,
    /// `[hidden, projected]`
    pub projector: Linear,
    /// `[projected, labels]`
    pub classifier: Linear,
}

impl WhisperForAudioClassification {
    /// Fresh parameters.
    pub fn new(config: &WhisperConfig, init: &Init) -> Self {
        let (device, std) = (init.device(), config.init_std);
        let count = config.encoder_layers + 1;
        let equal = || Initializer::Constant { value: 1.0 / count as f64 }.init([count], device);
        Self {
            encoder: WhisperEncoder::new(config, init),
            layer_weights: config.use_weighted_layer_sum.then(equal),
            projector: new_linear(config.d_model, config.classifier_proj_size, true, std, device),
            classifier: new_linear(config.classifier_proj_size, config.general.num_labels(), true, std, device),
        }
    }

    /// Runs the encoder and scores each sound, `[batch, labels]`. Where hidden states are summed, all of them are in the
    /// output unless the call or the config says which are wanted.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, or something that was
    /// asked for cannot be recorded.
    pub fn forward(
        &self,
        inputs: impl Into<SpeechInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<SequenceClassifierOutput, ForwardError> {
        let mut inputs = inputs.into();
        let labels = inputs.labels.take();
        let (mut base, read) = match &self.layer_weights {
            Some(weights) => self.run_summed(weights.val(), inputs, kwargs)?,
            None => {
                let base = self.encoder.forward(inputs, kwargs)?;
                let last = base.last_hidden_state.clone();
                (base, last)
            }
        };
        let projected = linear(&self.projector, read);
        let logits = linear(&self.classifier, projected.mean_dim(1).squeeze_dim::<2>(1));
        let mut output = SequenceClassifierOutput::new(logits.clone());
        let loss = |labels| classification_loss(logits, labels, Some("single_label_classification"));
        output.loss = labels.map(loss).transpose()?;
        base.pass_on(&mut output)?;
        Ok(output)
    }

    /// The encoder's output with what the caller wants of it, and the sum of all its hidden states by `weights`.
    fn run_summed(
        &self,
        weights: Tensor<1>,
        inputs: SpeechInputs,
        kwargs: &ForwardKwargs,
    ) -> Result<(BaseModelOutput, Tensor<3>), ForwardError> {
        const KEY: &str = "hidden_states";
        let asked = self.encoder.forward_plan(kwargs)?;
        let planned = asked.keys().iter().find(|planned| planned.key() == KEY);
        // computed with, so not yet as the caller wants to have them
        let request = kwargs.clone().as_they_are().output_hidden_states(true);
        let mut base = self.encoder.forward(inputs, &request)?;
        let weights = activation::softmax(weights, 0);
        let weighted = base.hidden_states.iter().map(|(position, _, state)| {
            let weight = weights.clone().slice(position..position + 1).reshape([1, 1, 1]);
            state.clone() * weight
        });
        let sum = weighted.reduce(|sum, next| sum + next).unwrap_or_else(|| base.last_hidden_state.clone());
        match planned {
            Some(planned) => base.hidden_states.retain(|position| planned.keeps(position)),
            // nobody said anything: they are there anyway, as in the reference
            None if matches!(kwargs.flag(KEY), Flag::Unset) => {}
            None => base.hidden_states = Captured::default(),
        }
        base.hidden_states = base.hidden_states.kept(kwargs.keep());
        base.attentions = base.attentions.kept(kwargs.keep());
        Ok((base, sum))
    }
}

model_head! {
    WhisperForAudioClassification { encoder: WhisperEncoder }(WhisperConfig):
        SpeechInputs => SequenceClassifierOutput;
    prefix: "model",
    inputs: &["input_features", "labels"]
}
