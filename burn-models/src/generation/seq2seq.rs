use super::run::{generate_processed, read};
use super::{GenerateError, GenerateOutput, GenerationConfig, Processor};
use crate::config::TokenIds;
use crate::error::ForwardError;
use crate::inputs::{Seq2SeqInputs, TextInputs};
use crate::models::{CausalLM, EncoderDecoder, Seq2SeqLM, Tower, without_encoder};
use crate::outputs::Seq2SeqLMOutput;
use burn::tensor::{Device, Int, Tensor};
use patching_core::capture::ForwardKwargs;
use std::sync::Mutex;

/// What an encoder reads.
type Source<M> = <<M as EncoderDecoder>::Encoder as Tower>::Inputs;

/// Answers each text, sound or picture of a batch that the encoder reads, until a token ends the answer or it is long
/// enough.
///
/// The encoder runs once; what it recorded is in the output of the first step. The decoder begins with the tokens given
/// for it, else with the token that the generation config or the model's says; where the family's texts all begin with that
/// token, it is put in front of given tokens, too, unless one of them begins with it. Everything else is as in
/// [`generate`](super::generate()).
///
/// # Errors
///
/// When the inputs or the generation config do not fit, or a forward pass fails.
pub fn generate_seq2seq<M: Seq2SeqLM>(
    model: &M,
    inputs: impl Into<Seq2SeqInputs<Source<M>>>,
    config: &GenerationConfig,
    kwargs: &ForwardKwargs,
) -> Result<GenerateOutput<Seq2SeqLMOutput>, GenerateError>
where
    Source<M>: Batch,
{
    generate_seq2seq_processed(model, inputs.into(), config, kwargs, &[])
}

/// [`generate_seq2seq`] with rules of a family.
pub(crate) fn generate_seq2seq_processed<M: Seq2SeqLM>(
    model: &M,
    mut inputs: Seq2SeqInputs<Source<M>>,
    config: &GenerationConfig,
    kwargs: &ForwardKwargs,
    processors: &[&dyn Processor],
) -> Result<GenerateOutput<Seq2SeqLMOutput>, GenerateError>
where
    Source<M>: Batch,
{
    if inputs.decoder.labels.is_some() {
        return Err(GenerateError::Argument("labels"));
    }
    let mut prompt = std::mem::take(&mut inputs.decoder);
    let start = config.decoder_start_token_id.or(model.decoder_start_token_id());
    if prompt.input_ids.is_none() && prompt.inputs_embeds.is_none() {
        let start = start.ok_or(GenerateError::NoStartToken)?;
        let of_states = inputs.encoder_last_hidden_state.as_ref().map(|states| (states.dims()[0], states.device()));
        let of_source = inputs.source.as_ref().and_then(Batch::batch);
        let (batch, device) = of_source.or(of_states).ok_or(GenerateError::NoPrompt)?;
        prompt.input_ids = Some(Tensor::<2, Int>::full([batch, 1], start, &device));
    } else if let Some(start) = start.filter(|_| M::BEGINS_WITH_START) {
        prompt = begun(prompt, start)?;
    }
    let state = Mutex::new(State::Unread(Box::new(inputs)));
    generate_processed(&Decoding { model, state }, prompt, config, kwargs, processors)
}

/// A prompt with `start` in front of its texts, unless one of them begins with it.
fn begun(mut prompt: TextInputs, start: i64) -> Result<TextInputs, GenerateError> {
    let Some(ids) = prompt.input_ids.take() else { return Ok(prompt) };
    let [_, seq] = ids.dims();
    let first = read(&ids.clone().slice_dim(1, 0..seq.min(1)), "decoder_input_ids")?;
    if first.contains(&start) {
        prompt.input_ids = Some(ids);
        return Ok(prompt);
    }
    let column =
        |value: i64, like: &Tensor<2, Int>| Tensor::full([like.dims()[0], 1], value, (&like.device(), like.dtype()));
    prompt.input_ids = Some(Tensor::cat(vec![column(start, &ids), ids], 1));
    prompt.attention_mask = prompt.attention_mask.map(|mask| Tensor::cat(vec![column(1, &mask), mask], 1));
    Ok(prompt)
}

/// Inputs of a batch of sequences.
pub trait Batch {
    /// How many sequences there are, and where; `None` if nothing is given.
    fn batch(&self) -> Option<(usize, Device)>;
}

impl Batch for TextInputs {
    fn batch(&self) -> Option<(usize, Device)> {
        let ids = self.input_ids.as_ref().map(|ids| (ids.dims()[0], ids.device()));
        let embeds = self.inputs_embeds.as_ref().map(|embeds| (embeds.dims()[0], embeds.device()));
        ids.or(embeds)
    }
}

impl Batch for crate::inputs::SpeechInputs {
    fn batch(&self) -> Option<(usize, Device)> {
        Some((self.input_features.dims()[0], self.input_features.device()))
    }
}

/// The decoder as a language model of its own: the first call lets the encoder run.
struct Decoding<'m, M: Seq2SeqLM> {
    model: &'m M,
    state: Mutex<State<Source<M>>>,
}

#[allow(clippy::large_enum_variant, reason = "there is one for each text that is generated")]
enum State<S> {
    /// What the encoder is to read.
    Unread(Box<Seq2SeqInputs<S>>),
    /// What it gave, and which positions are padding.
    Read(Box<(Tensor<3>, Option<Tensor<2, Int>>)>),
    /// A call failed.
    Lost,
}

impl<M: Seq2SeqLM> CausalLM for Decoding<'_, M> {
    type Output = Seq2SeqLMOutput;

    fn forward_causal(&self, mut decoder: TextInputs, kwargs: &ForwardKwargs) -> Result<Seq2SeqLMOutput, ForwardError> {
        // positions are counted for every decoder, but not all look at them
        if !M::INPUT_NAMES.contains(&"decoder_position_ids") {
            decoder.position_ids = None;
        }
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (inputs, kwargs, mask) = match std::mem::replace(&mut *state, State::Lost) {
            State::Unread(inputs) => {
                let mask = inputs.source.as_ref().and_then(M::source_mask);
                let mask = inputs.encoder_attention_mask.clone().or(mask);
                (*inputs, kwargs.clone(), mask)
            }
            State::Read(read) => {
                let (states, mask) = *read;
                // what only the encoder records is in the output of the first step
                (Seq2SeqInputs::encoded(states).encoder_attention_mask(mask.clone()), without_encoder(kwargs), mask)
            }
            State::Lost => {
                let (model, name) = (M::CLASS_NAME.to_owned(), "source");
                return Err(ForwardError::Absent { model, name, because: ": an earlier step failed" });
            }
        };
        let output = self.model.forward_seq2seq(inputs.decoder(decoder), &kwargs)?;
        if let Some(states) = &output.encoder_last_hidden_state {
            *state = State::Read(Box::new((states.clone(), mask)));
        }
        Ok(output)
    }

    fn eos_token_id(&self) -> Option<&TokenIds> {
        self.model.eos_token_id()
    }

    fn pad_token_id(&self) -> Option<i64> {
        self.model.pad_token_id()
    }
}
