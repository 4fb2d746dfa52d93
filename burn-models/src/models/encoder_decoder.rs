use super::tower::{declared_keys, each_once};
use super::{Model, Tower};
use crate::config::{ModelConfig, TokenIds};
use crate::error::ForwardError;
use crate::inputs::{Labels, Seq2SeqInputs, TextInputs};
use crate::layers::{IGNORED, select_positions, token_loss};
use crate::outputs::{
    BaseModelOutputWithPastAndCrossAttentions, HiddenStateOutput, Seq2SeqLMOutput, Seq2SeqModelOutput,
};
use burn::tensor::{Int, Tensor};
use patching_core::capture::{CapturePlan, ConfigDefaults, Part};
use patching_core::prelude::*;

/// What an encoder's values are called in the output of the whole.
const ENCODER: &str = "encoder_";
/// What a decoder's values are called there.
const DECODER: &str = "decoder_";

/// An encoder, and a decoder that looks at what it gives. Each records by its own declaration.
pub trait EncoderDecoder: PreTrainedModel<Config: ModelConfig + ConfigDefaults> {
    /// The encoder.
    type Encoder: Tower<Output: HiddenStateOutput>;
    /// The decoder.
    type Decoder: Tower<Inputs = TextInputs, Output = BaseModelOutputWithPastAndCrossAttentions>;

    /// The encoder.
    fn encoder(&self) -> &Self::Encoder;

    /// The decoder.
    fn decoder(&self) -> &Self::Decoder;

    /// Which positions of what the encoder gives are padding, `[batch, source]`, by what it reads.
    fn source_mask(source: &<Self::Encoder as Tower>::Inputs) -> Option<Tensor<2, Int>>;

    /// What the encoder is given: by default what the caller gave. A model that keeps the embedding beside both parts
    /// embeds the tokens here.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit the embedding.
    fn for_encoder(
        &self,
        source: <Self::Encoder as Tower>::Inputs,
    ) -> Result<<Self::Encoder as Tower>::Inputs, ForwardError> {
        Ok(source)
    }

    /// The same for the decoder.
    ///
    /// # Errors
    ///
    /// As [`for_encoder`](Self::for_encoder).
    fn for_decoder(&self, decoder: TextInputs) -> Result<TextInputs, ForwardError> {
        Ok(decoder)
    }

    /// The token that the decoder begins with, as the model's config says.
    fn decoder_start_token_id(&self) -> Option<i64>;

    /// The padding token, as the model's config says.
    fn pad_token_id(&self) -> Option<i64>;

    /// The tokens that end a text, as the model's config says.
    fn eos_token_id(&self) -> Option<&TokenIds>;
}

/// An encoder and a decoder with a language model head, which can generate text.
pub trait Seq2SeqLM: EncoderDecoder + Model {
    /// Whether every text that the decoder is given begins with the start token, which is put in front where no text of a
    /// batch has it. Where prompts have other beginnings, it is not.
    const BEGINS_WITH_START: bool = true;

    /// As the model's own `forward`.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, or something that was asked
    /// for cannot be recorded.
    fn forward_seq2seq(
        &self,
        inputs: Seq2SeqInputs<<Self::Encoder as Tower>::Inputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<Seq2SeqLMOutput, ForwardError>;
}

/// The encoder shares its class with the decoder in some families, but has no encoder to look at.
fn encoder_part<M: EncoderDecoder>() -> Part {
    Part::of::<M::Encoder>(ENCODER).without("cross_attentions")
}

fn decoder_part<M: EncoderDecoder>() -> Part {
    Part::of::<M::Decoder>(DECODER)
}

/// Runs the encoder, unless what it gave is known, and the decoder.
pub(crate) fn encode_decode<M: EncoderDecoder>(
    model: &M,
    inputs: Seq2SeqInputs<<M::Encoder as Tower>::Inputs>,
    kwargs: &ForwardKwargs,
) -> Result<Seq2SeqModelOutput, ForwardError> {
    let Seq2SeqInputs { source, encoder_last_hidden_state, encoder_attention_mask, mut decoder } = inputs;
    let config = model.config();
    let model_type = || config.general().model_type.clone();
    if decoder.input_ids.is_none() && decoder.inputs_embeds.is_none() {
        decoder.input_ids = Some(moved_right(model, decoder.labels.as_ref())?);
    }
    decoder.labels = None;
    let decoder = model.for_decoder(decoder).map_err(ForwardError::of_decoder)?;
    let (encoded, mask, request, last_hidden_state) = match (source, encoder_last_hidden_state) {
        (Some(source), None) => {
            let parts = [encoder_part::<M>(), decoder_part::<M>()];
            let [of_encoder, of_decoder] = kwargs.split(M::CLASS_NAME, config, &parts)?;
            let mask = encoder_attention_mask.or_else(|| M::source_mask(&source));
            let encoded = model.encoder().run_tower(model.for_encoder(source)?, &of_encoder)?;
            let last_hidden_state = encoded.last_hidden_state().clone();
            (Some(encoded), mask, of_decoder, last_hidden_state)
        }
        (None, Some(known)) => {
            let [of_decoder] = kwargs.split(M::CLASS_NAME, config, &[decoder_part::<M>()])?;
            (None, encoder_attention_mask, of_decoder, known)
        }
        (None, None) => {
            let because = " or `encoder_last_hidden_state`";
            return Err(ForwardError::Absent { model: model_type(), name: "source", because });
        }
        (Some(_), Some(_)) => {
            let because = " beside what the encoder reads";
            return Err(ForwardError::Unused { model: model_type(), name: "encoder_last_hidden_state", because });
        }
    };
    let decoder =
        TextInputs { encoder_hidden_states: Some(last_hidden_state.clone()), encoder_attention_mask: mask, ..decoder };
    let mut decoded = model.decoder().run_tower(decoder, &request).map_err(ForwardError::of_decoder)?;
    let mut output = Seq2SeqModelOutput::new(decoded.last_hidden_state.clone());
    output.cache = decoded.cache.take();
    output.encoder_last_hidden_state = Some(last_hidden_state);
    decoded.pass_on_as(DECODER, &mut output)?;
    if let Some(mut encoded) = encoded {
        encoded.pass_on_as(ENCODER, &mut output)?;
    }
    Ok(output)
}

/// What a request would record in both parts.
pub(crate) fn encoder_decoder_plan<M: EncoderDecoder>(
    model: &M,
    [encoder_path, decoder_path]: [&'static str; 2],
    kwargs: &ForwardKwargs,
) -> Result<CapturePlan, CaptureError> {
    let parts = [encoder_part::<M>(), decoder_part::<M>()];
    let [of_encoder, of_decoder] = kwargs.split(M::CLASS_NAME, model.config(), &parts)?;
    let encoder = model.encoder().tower_plan(&of_encoder)?;
    let decoder = model.decoder().tower_plan(&of_decoder)?;
    let parts = [(DECODER, decoder_path, decoder), (ENCODER, encoder_path, encoder)];
    Ok(CapturePlan::of_parts::<Seq2SeqModelOutput>(M::CLASS_NAME, parts))
}

/// Whether anything that a request would record is the encoder's.
pub(crate) fn records_encoder<M: EncoderDecoder + Model>(
    model: &M,
    kwargs: &ForwardKwargs,
) -> Result<bool, CaptureError> {
    let plan = model.capture_plan(kwargs)?;
    Ok(plan.keys().iter().any(|planned| planned.key().starts_with(ENCODER)))
}

/// The request without what is asked of the encoder alone, for a call in which it does not run.
pub(crate) fn without_encoder(kwargs: &ForwardKwargs) -> ForwardKwargs {
    kwargs.without_prefix(ENCODER)
}

/// The keys of both parts.
pub(crate) fn encoder_decoder_keys<M: EncoderDecoder>() -> Vec<String> {
    each_once([declared_keys::<M::Encoder>(), declared_keys::<M::Decoder>()])
}

/// The scores of tokens by what a decoder gave, with everything that was recorded, and the loss if labels are given: they
/// stand where the tokens are expected.
pub(crate) fn score_tokens(
    mut model: Seq2SeqModelOutput,
    decoder: ScoredTokens,
    logits: impl FnOnce(Tensor<3>) -> Tensor<3>,
) -> Result<Seq2SeqLMOutput, ForwardError> {
    let logits = logits(select_positions(model.last_hidden_state.clone(), decoder.logits_to_keep)?);
    let mut output = Seq2SeqLMOutput::new(logits.clone());
    output.loss = decoder.labels.map(|labels| token_loss(logits, labels)).transpose()?;
    output.cache = model.cache.take();
    output.encoder_last_hidden_state = model.encoder_last_hidden_state.take();
    model.pass_on(&mut output)?;
    Ok(output)
}

/// What a language model head needs of the inputs.
#[derive(Debug)]
pub(crate) struct ScoredTokens {
    labels: Option<Labels>,
    logits_to_keep: crate::inputs::LogitsToKeep,
}

impl ScoredTokens {
    /// Out of what the decoder is given.
    pub(crate) fn of(decoder: &mut TextInputs) -> Self {
        // the labels stay: without tokens the decoder reads them
        let labels = decoder.labels.clone();
        Self { labels, logits_to_keep: std::mem::take(&mut decoder.logits_to_keep) }
    }
}

/// The tokens that a decoder reads to answer with `labels`.
fn moved_right<M: EncoderDecoder>(model: &M, labels: Option<&Labels>) -> Result<Tensor<2, Int>, ForwardError> {
    match labels {
        Some(Labels::Tokens(labels)) => begun_with(model, labels),
        _ => Err(ForwardError::Absent {
            model: model.config().general().model_type.clone(),
            name: "decoder_input_ids",
            because: ": there are no tokens as `labels` either",
        }),
    }
}

/// The start token, then all of `tokens` but the last, with padding where none is expected.
pub(crate) fn begun_with<M: EncoderDecoder>(
    model: &M,
    tokens: &Tensor<2, Int>,
) -> Result<Tensor<2, Int>, ForwardError> {
    let model_type = || model.config().general().model_type.clone();
    let absent = |name, because| ForwardError::Absent { model: model_type(), name, because };
    let start = model.decoder_start_token_id();
    let start =
        start.ok_or_else(|| absent("decoder_start_token_id", " in the config, to begin the decoder's tokens"))?;
    let pad = model.pad_token_id().ok_or_else(|| absent("pad_token_id", " in the config, for the decoder's tokens"))?;
    let [batch, seq] = tokens.dims();
    let tokens = tokens.clone().mask_fill(tokens.clone().equal_scalar(IGNORED), pad);
    let first = Tensor::full([batch, 1], start, (&tokens.device(), tokens.dtype()));
    Ok(match seq {
        0 | 1 => first,
        _ => Tensor::cat(vec![first, tokens.slice_dim(1, 0..seq - 1)], 1),
    })
}
