use super::{GenerateError, unsupported};
use crate::config::TokenIds;
use crate::models::CausalLM;
use patching_core::weights::{ReadError, read_text};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::io::ErrorKind;
use std::path::Path;

/// How many tokens are added if the config does not say.
pub(crate) const DEFAULT_NEW_TOKENS: usize = 20;

/// The largest file that is read.
const MAX_FILE: u64 = 1 << 20;

/// What a model's config may say of generation.
const OF_MODEL: [&str; 5] =
    ["begin_suppress_tokens", "forced_bos_token_id", "forced_decoder_ids", "forced_eos_token_id", "suppress_tokens"];

/// How text is generated; fields are named as in `generation_config.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GenerationConfig {
    /// How many tokens to add; beats `max_length`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_new_tokens: Option<usize>,
    /// How long a sequence may become, prompt included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length: Option<usize>,
    /// Whether tokens are drawn by their probability, and not the most probable one taken.
    pub do_sample: bool,
    /// Sampling: scores are divided by it; small values favour probable tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Sampling: only so many of the most probable tokens are considered; 0: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<usize>,
    /// Sampling: only the most probable tokens that together reach this probability are considered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Tokens that end a sequence; absent: the model's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eos_token_id: Option<TokenIds>,
    /// What finished sequences are filled up with; absent: the model's, or the first token that ends a sequence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pad_token_id: Option<i64>,
    /// The token that a decoder begins with which answers an encoder; absent: the model's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decoder_start_token_id: Option<i64>,
    /// Tokens that are never chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suppress_tokens: Option<Vec<i64>>,
    /// Tokens that are not chosen first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begin_suppress_tokens: Option<Vec<i64>>,
    /// The token that comes after a prompt of a single one, such as the language that is translated into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forced_bos_token_id: Option<i64>,
    /// What the last token is that may be added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forced_eos_token_id: Option<TokenIds>,
    /// Tokens at places of the sequence, counted from 0 with the prompt; `None` leaves a place free. The reference knows
    /// them for Whisper only, whose prompt they become.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forced_decoder_ids: Option<Vec<(usize, Option<i64>)>>,
    /// Whether keys and values are kept between steps. Without, every step computes the whole sequence again.
    pub use_cache: bool,
    /// Whether the scores of each step are given back.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub output_logits: bool,
    /// Sampling: where the random numbers begin; absent: somewhere else every time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Everything else, as it was read.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Default for GenerationConfig {
    fn default() -> Self {
        Self {
            max_new_tokens: None,
            max_length: None,
            do_sample: false,
            temperature: None,
            top_k: None,
            top_p: None,
            eos_token_id: None,
            pad_token_id: None,
            decoder_start_token_id: None,
            suppress_tokens: None,
            begin_suppress_tokens: None,
            forced_bos_token_id: None,
            forced_eos_token_id: None,
            forced_decoder_ids: None,
            use_cache: true,
            output_logits: false,
            seed: None,
            extra: Map::new(),
        }
    }
}

impl GenerationConfig {
    /// The file's name.
    pub const FILE_NAME: &'static str = "generation_config.json";

    /// Greedy, `max_new_tokens` more tokens.
    pub fn greedy(max_new_tokens: usize) -> Self {
        Self { max_new_tokens: Some(max_new_tokens), ..Self::default() }
    }

    /// Sampling, `max_new_tokens` more tokens, beginning at `seed`.
    pub fn sample(max_new_tokens: usize, seed: u64) -> Self {
        Self { do_sample: true, seed: Some(seed), ..Self::greedy(max_new_tokens) }
    }

    /// Reads the folder's `generation_config.json`; without one, what its `config.json` says of suppressed and forced
    /// tokens, as older checkpoints have them there, and else the defaults.
    ///
    /// # Errors
    ///
    /// When the file is there, but cannot be read, is too large, or is not what it should be.
    pub fn from_pretrained(dir: impl AsRef<Path>) -> Result<Self, GenerateError> {
        let own = dir.as_ref().join(Self::FILE_NAME);
        let config: Self = match fields(&own)? {
            Some(fields) => from_fields(&own, fields)?,
            None => {
                let of_model = dir.as_ref().join("config.json");
                let mut fields = fields(&of_model)?.unwrap_or_default();
                fields.retain(|name, _| OF_MODEL.contains(&name.as_str()));
                from_fields(&of_model, fields)?
            }
        };
        config.check_numbers()?;
        Ok(config)
    }

    /// Checks that the numbers make sense, and that nothing in [`extra`](Self::extra) would change what is generated
    /// if it were followed.
    ///
    /// A file with such a setting can be read, so that the setting can be taken out; nothing is generated before.
    ///
    /// # Errors
    ///
    /// [`GenerateError::Setting`] names the first number that makes no sense, [`GenerateError::Unsupported`] every
    /// setting that cannot be followed.
    pub fn validate(&self) -> Result<(), GenerateError> {
        self.check_numbers()?;
        let found = unsupported::in_force(&self.extra, self.do_sample);
        if found.is_empty() { Ok(()) } else { Err(GenerateError::Unsupported { found }) }
    }

    fn check_numbers(&self) -> Result<(), GenerateError> {
        let wrong = |name, found: String, expected| Err(GenerateError::Setting { name, found, expected });
        if let Some(temperature) = self.temperature
            && !(temperature.is_finite() && temperature > 0.0)
        {
            let expected = "a positive number; for the most probable token, `do_sample = false`";
            return wrong("temperature", temperature.to_string(), expected);
        }
        if let Some(top_p) = self.top_p
            && !(top_p > 0.0 && top_p <= 1.0)
        {
            return wrong("top_p", top_p.to_string(), "more than 0 and at most 1");
        }
        Ok(())
    }

    /// What the model's config adds where this one says nothing.
    pub(crate) fn or_model<M: CausalLM>(&self, model: &M) -> Self {
        let mut merged = self.clone();
        if merged.eos_token_id.is_none() {
            merged.eos_token_id = model.eos_token_id().cloned();
        }
        if merged.pad_token_id.is_none() {
            merged.pad_token_id = model.pad_token_id();
        }
        merged
    }

    /// How many tokens may be added to a prompt of `prompt` tokens.
    pub(crate) fn new_tokens(&self, prompt: usize) -> Result<usize, GenerateError> {
        match (self.max_new_tokens, self.max_length) {
            (Some(new), _) => Ok(new),
            (None, Some(length)) if length > prompt => Ok(length - prompt),
            (None, Some(length)) => Err(GenerateError::Setting {
                name: "max_length",
                found: length.to_string(),
                expected: "more than the prompt has tokens",
            }),
            (None, None) => Ok(DEFAULT_NEW_TOKENS),
        }
    }
}

/// The fields of a file, if it is there.
fn fields(path: &Path) -> Result<Option<Map<String, Value>>, GenerateError> {
    let text = match read_text(path, MAX_FILE) {
        Ok(text) => text,
        Err(ReadError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(GenerateError::Read(error)),
    };
    let problem = |error: serde_json::Error| GenerateError::File { path: path.to_owned(), problem: error.to_string() };
    serde_json::from_str(&text).map(Some).map_err(problem)
}

fn from_fields(path: &Path, fields: Map<String, Value>) -> Result<GenerationConfig, GenerateError> {
    let mut track = serde_path_to_error::Track::new();
    let fields = Value::Object(fields);
    let config = GenerationConfig::deserialize(serde_path_to_error::Deserializer::new(fields, &mut track));
    config.map_err(|error| {
        let problem = format!("`{}`: {error}", track.path());
        GenerateError::File { path: path.to_owned(), problem }
    })
}
