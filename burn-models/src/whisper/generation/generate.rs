use super::prompt::initial_tokens;
use super::timestamps::TimestampRules;
use super::{Settings, SpeechError};
use crate::config::{GeneralConfig, TokenIds};
use crate::error::ForwardError;
use crate::generation::{
    Batch, DEFAULT_NEW_TOKENS, GenerateError, GenerateOutput, GenerationConfig, Processor, generate_seq2seq_processed,
};
use crate::inputs::{Seq2SeqInputs, SpeechInputs};
use crate::models::{records_encoder, records_nothing, without_encoder};
use crate::outputs::Seq2SeqLMOutput;
use crate::whisper::config::FRAMES;
use crate::whisper::{WhisperEncoder, WhisperForConditionalGeneration};
use burn::tensor::{DType, Device, Int, Tensor};
use patching_core::prelude::*;
use serde::Deserialize;

/// Tokens for certain places, or that one is open.
type Forced = Vec<(usize, Option<i64>)>;

impl WhisperForConditionalGeneration {
    /// Writes down what is said in each spectrogram of a batch, of at most as many frames as the encoder has; shorter ones
    /// are filled up with zeros.
    ///
    /// The decoder begins with the tokens given for it; else with the start token, the language and the task where the
    /// model knows several, and the token that says that no times are wanted. They are in the output's `sequences`, whose
    /// first `prompt_length` tokens they are, and so is the token that ends a text: as the reference has them with
    /// `return_dict_in_generate`. Without, the reference leaves both out.
    ///
    /// These settings are read from [`extra`](GenerationConfig::extra) besides what the checkpoint's
    /// `generation_config.json` says there:
    ///
    /// - `language`: a name, code or token, or a list of one for each spectrogram. Without it the model hears which
    ///   language it is, if it knows several ([`detect_language`](Self::detect_language)).
    /// - `task`: `transcribe`, or `translate` into English.
    /// - `return_timestamps`: whether tokens for times are wanted between the words. It is a single pass here; for parts
    ///   with their times, and for longer sounds, there is [`transcribe`](Self::transcribe).
    ///
    /// `max_length` does not count the prompt, as in the reference, and a text ends at the decoder's last position.
    ///
    /// # Errors
    ///
    /// When the inputs or the generation config do not fit, the spectrogram is too long, or a forward pass fails.
    pub fn generate(
        &self,
        inputs: impl Into<Seq2SeqInputs<SpeechInputs>>,
        config: &GenerationConfig,
        kwargs: &ForwardKwargs,
    ) -> Result<GenerateOutput<Seq2SeqLMOutput>, GenerateError> {
        let settings = Settings::of(config)?;
        let (mut inputs, mut kwargs) = (self.filled_up(inputs.into())?, kwargs.clone());
        if inputs.decoder.input_ids.is_none() && inputs.decoder.inputs_embeds.is_none() {
            let prompt = self.prompt(&mut inputs, &settings, config, &mut kwargs)?;
            inputs.decoder.input_ids = Some(prompt);
        }
        self.generate_after(inputs, &settings, config, &kwargs)
    }

    /// The token of the language that is spoken in each sound of a batch, by `lang_to_id` of the generation config: the
    /// likeliest after the start token.
    ///
    /// # Errors
    ///
    /// When the generation config has no such table, the inputs do not fit, or a forward pass fails.
    pub fn detect_language(
        &self,
        inputs: impl Into<Seq2SeqInputs<SpeechInputs>>,
        config: &GenerationConfig,
    ) -> Result<Vec<i64>, GenerateError> {
        let settings = Settings::of(config)?;
        let inputs = self.filled_up(inputs.into())?;
        let states = self.encoded(&inputs)?;
        self.heard(states, &settings, config)
    }

    /// What the decoder begins with, `[batch, tokens]`. Where that takes what the encoder gives, it is left in `inputs` in
    /// place of the spectrogram, so that the encoder runs once.
    pub(super) fn prompt(
        &self,
        inputs: &mut Seq2SeqInputs<SpeechInputs>,
        settings: &Settings,
        config: &GenerationConfig,
        kwargs: &mut ForwardKwargs,
    ) -> Result<Tensor<2, Int>, GenerateError> {
        let (batch, device) = batch(inputs)?;
        let model = &self.model.config;
        let forced = match config.forced_decoder_ids.clone() {
            None => forced_by(&model.general)?,
            own => own,
        };
        let rows = initial_tokens(self.start(config)?, settings, forced.as_deref(), batch, || {
            let states = self.encoded(inputs)?;
            // what the encoder records is in the output of the first step: then it runs there again
            if !records_encoder(self, kwargs).map_err(ForwardError::from)? {
                let decoder = std::mem::take(&mut inputs.decoder);
                *inputs = Seq2SeqInputs::encoded(states.clone()).decoder(decoder);
                *kwargs = without_encoder(kwargs);
            }
            self.heard(states, settings, config)
        })?;
        let flat = rows.concat();
        let columns = flat.len() / batch.max(1);
        let ids = Tensor::<1, Int>::from_data(flat.as_slice(), (&device, DType::I64));
        Ok(ids.reshape([batch, columns]))
    }

    /// Generates after a prompt that is in `inputs`.
    pub(super) fn generate_after(
        &self,
        inputs: Seq2SeqInputs<SpeechInputs>,
        settings: &Settings,
        config: &GenerationConfig,
        kwargs: &ForwardKwargs,
    ) -> Result<GenerateOutput<Seq2SeqLMOutput>, GenerateError> {
        let prompt = inputs.decoder.input_ids.as_ref().map_or(0, |ids| ids.dims()[1]);
        // they are in the prompt
        let mut config = GenerationConfig { forced_decoder_ids: None, ..config.clone() };
        config.max_new_tokens = Some(self.new_tokens(prompt, &config)?);
        let of_model = &self.model.config;
        let eos = config.eos_token_id.as_ref().or(of_model.eos_token_id.as_ref()).and_then(TokenIds::first);
        let end_of_text = eos.or(of_model.bos_token_id).and_then(|end| usize::try_from(end).ok());
        let rules = settings.first_time().filter(|_| settings.wants_timestamps()).map(|first_time| TimestampRules {
            first_time,
            end_of_text: end_of_text.unwrap_or_default(),
            latest_first: settings.max_initial_timestamp_index,
        });
        let processors: Vec<&dyn Processor> = rules.iter().map(|rules| rules as &dyn Processor).collect();
        generate_seq2seq_processed(self, inputs, &config, kwargs, &processors)
    }

    /// How many tokens may be added to a prompt of `prompt` tokens.
    fn new_tokens(&self, prompt: usize, config: &GenerationConfig) -> Result<usize, SpeechError> {
        let limit = self.model.config.max_target_positions;
        if let Some(new) = config.max_new_tokens {
            let fits = prompt.saturating_add(new) <= limit;
            return if fits { Ok(new) } else { Err(SpeechError::TooManyTokens { prompt, new, limit }) };
        }
        // a long prompt counts up to half of the positions
        let counted = prompt.min((limit / 2).saturating_sub(1));
        let length = config.max_length.unwrap_or(DEFAULT_NEW_TOKENS).saturating_add(counted).min(limit);
        match length.checked_sub(prompt) {
            Some(new) if new > 0 => Ok(new),
            _ => Err(SpeechError::TooManyTokens { prompt, new: 1, limit: length }),
        }
    }

    fn start(&self, config: &GenerationConfig) -> Result<i64, GenerateError> {
        let of_model = self.model.config.decoder_start_token_id;
        config.decoder_start_token_id.or(of_model).ok_or(GenerateError::NoStartToken)
    }

    /// Fills a spectrogram up to the number of frames that the encoder takes.
    pub(super) fn filled_up(
        &self,
        mut inputs: Seq2SeqInputs<SpeechInputs>,
    ) -> Result<Seq2SeqInputs<SpeechInputs>, GenerateError> {
        if let Some(source) = inputs.source.take() {
            if source.labels.is_some() {
                return Err(GenerateError::Argument("labels"));
            }
            let features = source.input_features;
            let [_, _, found] = features.dims();
            let limit = self.window();
            if found > limit {
                return Err(SpeechError::TooLong { found, limit }.into());
            }
            inputs.source = Some(SpeechInputs::new(filled(features, limit)));
        }
        Ok(inputs)
    }

    /// How many frames the encoder takes.
    pub(super) fn window(&self) -> usize {
        FRAMES * self.model.config.max_source_positions
    }

    /// What the encoder gives, with nothing recorded.
    fn encoded(&self, inputs: &Seq2SeqInputs<SpeechInputs>) -> Result<Tensor<3>, GenerateError> {
        match (&inputs.source, &inputs.encoder_last_hidden_state) {
            (Some(source), None) => {
                Ok(self.model.encoder.forward(source.clone(), &records_nothing::<WhisperEncoder>())?.last_hidden_state)
            }
            (None, Some(states)) => Ok(states.clone()),
            (None, None) => Err(GenerateError::NoPrompt),
            (Some(_), Some(_)) => Err(ForwardError::Unused {
                model: self.model.config.general.model_type.clone(),
                name: "encoder_last_hidden_state",
                because: " beside what the encoder reads",
            }
            .into()),
        }
    }

    /// The likeliest language of each sound.
    fn heard(
        &self,
        states: Tensor<3>,
        settings: &Settings,
        config: &GenerationConfig,
    ) -> Result<Vec<i64>, GenerateError> {
        let no_table = SpeechError::NoTable { name: "detect_language", table: "lang_to_id" };
        let languages: Vec<i64> = settings.lang_to_id.as_ref().ok_or(no_table)?.values().copied().collect();
        let [batch, _, _] = states.dims();
        let start = Tensor::<2, Int>::full([batch, 1], self.start(config)?, (&states.device(), DType::I64));
        let kwargs = records_nothing::<Self>().use_cache(false);
        let logits = self.forward(Seq2SeqInputs::encoded(states).decoder_input_ids(start), &kwargs)?.logits;
        let [_, _, vocabulary] = logits.dims();
        let outside = languages.iter().find(|id| !usize::try_from(**id).is_ok_and(|id| id < vocabulary));
        if let Some(found) = outside {
            return Err(GenerateError::OutsideVocabulary { name: "lang_to_id", found: *found, vocabulary });
        }
        // in order, so that of equal scores the lowest token counts
        let mut languages = languages;
        languages.sort_unstable();
        let index = Tensor::<1, Int>::from_data(languages.as_slice(), (&logits.device(), DType::I64));
        let best = logits.reshape([batch, vocabulary]).select(1, index).argmax(1);
        let best =
            best.try_into_data().map_err(|error| ForwardError::Read { name: "logits", problem: error.to_string() })?;
        Ok(best.iter::<i64>().filter_map(|at| languages.get(usize::try_from(at).ok()?).copied()).collect())
    }
}

/// The tokens for certain places of old configs, by the model's.
fn forced_by(general: &GeneralConfig) -> Result<Option<Forced>, SpeechError> {
    const NAME: &str = "forced_decoder_ids";
    let Some(value) = general.extra.get(NAME) else { return Ok(None) };
    let malformed = |error: serde_json::Error| SpeechError::ModelSetting { name: NAME, problem: error.to_string() };
    Option::deserialize(value).map_err(malformed)
}

/// How many sounds there are, and where.
fn batch(inputs: &Seq2SeqInputs<SpeechInputs>) -> Result<(usize, Device), GenerateError> {
    let of_states = inputs.encoder_last_hidden_state.as_ref().map(|states| (states.dims()[0], states.device()));
    inputs.source.as_ref().and_then(Batch::batch).or(of_states).ok_or(GenerateError::NoPrompt)
}

/// `[batch, mel bins, frames]` with zeros after it, `[batch, mel bins, length]`.
pub(super) fn filled(features: Tensor<3>, length: usize) -> Tensor<3> {
    let [batch, bins, frames] = features.dims();
    if frames >= length {
        return features;
    }
    let rest = Tensor::zeros([batch, bins, length - frames], (&features.device(), features.dtype()));
    if frames == 0 { rest } else { Tensor::cat(vec![features, rest], 2) }
}
