//! Text to tokens and back, with the `tokenizer.json` of a model's folder.

use crate::cli::error::CliError;
use std::path::Path;

const FILE_NAME: &str = "tokenizer.json";

pub(super) struct Tokenizer {
    #[cfg(feature = "text")]
    inner: tokenizers::Tokenizer,
    #[cfg(feature = "text")]
    path: std::path::PathBuf,
}

#[cfg(feature = "text")]
impl Tokenizer {
    /// The tokenizer in `dir`, if there is one.
    pub(super) fn load(dir: &Path) -> Result<Option<Self>, CliError> {
        let path = dir.join(FILE_NAME);
        if !path.exists() {
            return Ok(None);
        }
        match tokenizers::Tokenizer::from_file(&path) {
            Ok(inner) => Ok(Some(Self { inner, path })),
            Err(source) => Err(CliError::Tokenizer { path, source }),
        }
    }

    /// The tokenizer in `dir`.
    pub(super) fn needed(dir: &Path) -> Result<Self, CliError> {
        Self::load(dir)?.ok_or_else(|| CliError::NoTokenizer { dir: dir.to_owned() })
    }

    pub(super) fn encode(&self, text: &str) -> Result<Vec<i64>, CliError> {
        let encoding =
            self.inner.encode(text, true).map_err(|source| CliError::Tokenizer { path: self.path.clone(), source })?;
        let ids: Vec<i64> = encoding.get_ids().iter().map(|id| i64::from(*id)).collect();
        if ids.is_empty() { Err(CliError::EmptyText) } else { Ok(ids) }
    }

    /// A token to be read on a line.
    pub(super) fn name(&self, id: i64) -> String {
        let text = u32::try_from(id).ok().and_then(|id| {
            let decoded = self.inner.decode(&[id], false).ok().filter(|text| !text.is_empty());
            decoded.or_else(|| self.inner.id_to_token(id))
        });
        text.map_or_else(|| id.to_string(), |text| text.escape_debug().to_string())
    }

    pub(super) fn decode(&self, ids: &[i64]) -> Option<String> {
        let ids: Vec<u32> = ids.iter().map(|id| u32::try_from(*id).ok()).collect::<Option<_>>()?;
        self.inner.decode(&ids, true).ok()
    }
}

#[cfg(not(feature = "text"))]
impl Tokenizer {
    pub(super) fn load(_dir: &Path) -> Result<Option<Self>, CliError> {
        Ok(None)
    }

    pub(super) fn needed(dir: &Path) -> Result<Self, CliError> {
        if dir.join(FILE_NAME).exists() {
            Err(CliError::NoText)
        } else {
            Err(CliError::NoTokenizer { dir: dir.to_owned() })
        }
    }

    pub(super) fn encode(&self, _text: &str) -> Result<Vec<i64>, CliError> {
        Err(CliError::NoText)
    }

    pub(super) fn name(&self, id: i64) -> String {
        id.to_string()
    }

    pub(super) fn decode(&self, _ids: &[i64]) -> Option<String> {
        None
    }
}
