use super::SpeechError;
use crate::generation::GenerationConfig;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// What a generation config says, in its `extra`, that only Whisper knows.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Settings {
    /// Whether languages and tasks can be chosen.
    pub(super) is_multilingual: Option<bool>,
    /// The token of each language, by names such as `<|de|>`.
    pub(super) lang_to_id: Option<BTreeMap<String, i64>>,
    /// The token of each task.
    pub(super) task_to_id: Option<BTreeMap<String, i64>>,
    /// The token that says that no times are wanted; those after it are times.
    pub(super) no_timestamps_token_id: Option<i64>,
    /// Whether times are wanted.
    pub(super) return_timestamps: Option<bool>,
    /// How late the first time may be.
    pub(super) max_initial_timestamp_index: Option<usize>,
    /// What is spoken, for all or for each; absent: what the model hears.
    pub(super) language: Option<Languages>,
    /// `transcribe`, or `translate` into English.
    pub(super) task: Option<String>,
    /// Whether what was written of one window is read in the next; not followed.
    pub(super) condition_on_prev_tokens: Option<bool>,
    /// From which probability on a window counts as silence; not followed.
    pub(super) no_speech_threshold: Option<f64>,
    /// Whether each token gets a time; not followed.
    pub(super) return_token_timestamps: Option<bool>,
}

/// One language for all, or one for each.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(super) enum Languages {
    One(String),
    Each(Vec<String>),
}

impl Settings {
    pub(super) fn of(config: &GenerationConfig) -> Result<Self, SpeechError> {
        let mut track = serde_path_to_error::Track::new();
        let fields = Value::Object(config.extra.clone());
        let settings = Self::deserialize(serde_path_to_error::Deserializer::new(fields, &mut track));
        let settings = settings
            .map_err(|error| SpeechError::Setting { name: track.path().to_string(), problem: error.to_string() })?;
        settings.check()?;
        Ok(settings)
    }

    fn check(&self) -> Result<(), SpeechError> {
        let unsupported = [
            ("condition_on_prev_tokens", self.condition_on_prev_tokens == Some(true)),
            ("no_speech_threshold", self.no_speech_threshold.is_some()),
            ("return_token_timestamps", self.return_token_timestamps == Some(true)),
        ];
        if let Some((name, _)) = unsupported.into_iter().find(|(_, is_set)| *is_set) {
            return Err(SpeechError::Unsupported { name });
        }
        let chosen = [
            ("language", self.language.is_some(), "lang_to_id", self.lang_to_id.is_some()),
            ("task", self.task.is_some(), "task_to_id", self.task_to_id.is_some()),
            ("return_timestamps", self.wants_timestamps(), "no_timestamps_token_id", self.first_time().is_some()),
        ];
        for (name, is_set, table, is_there) in chosen {
            if is_set && name != "return_timestamps" && self.is_multilingual == Some(false) {
                return Err(SpeechError::EnglishOnly { name });
            }
            if is_set && !is_there {
                return Err(SpeechError::NoTable { name, table });
            }
        }
        Ok(())
    }

    pub(super) fn wants_timestamps(&self) -> bool {
        self.return_timestamps == Some(true)
    }

    /// The token of the time zero.
    pub(super) fn first_time(&self) -> Option<usize> {
        usize::try_from(self.no_timestamps_token_id?).ok()?.checked_add(1)
    }
}
