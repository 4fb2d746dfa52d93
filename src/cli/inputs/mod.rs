//! What the model is run on.

mod file;
mod tokenizer;

use super::args::InputArgs;
use super::error::CliError;
use super::model::Source;
use burn::tensor::{DType, TensorData};
use burnlens::burn_models::auto::{AnyModel, NamedInputs};
use tokenizer::Tokenizer;

/// What the default model is run on if nothing else is said: letters that begin to repeat.
const EXAMPLE: &str = "k d w f p m z k d w f";

/// Inputs, and how to speak of them.
pub(crate) struct Given {
    pub(crate) tensors: NamedInputs,
    /// Where they are from.
    pub(crate) origin: String,
    /// The tokens of the first sequence, if there are tokens.
    pub(crate) tokens: Option<Tokens>,
    tokenizer: Option<Tokenizer>,
}

/// The tokens of one sequence.
pub(crate) struct Tokens {
    pub(crate) ids: Vec<i64>,
    /// Which of them are no padding.
    pub(crate) real: Vec<bool>,
    names: Option<Vec<String>>,
}

impl Tokens {
    /// Without padding or names.
    #[cfg(test)]
    pub(crate) fn of_ids(ids: Vec<i64>) -> Self {
        let real = vec![true; ids.len()];
        Self { ids, real, names: None }
    }

    /// The token at `position` as text, if there is a tokenizer.
    pub(crate) fn name(&self, position: usize) -> Option<&str> {
        self.names.as_ref()?.get(position).map(String::as_str)
    }

    /// The token at `position` to be read: its text, else its id.
    pub(crate) fn shown(&self, position: usize) -> String {
        let id = || self.ids.get(position).map_or_else(String::new, ToString::to_string);
        self.name(position).map_or_else(id, str::to_owned)
    }

    /// The token at `position` as part of a sentence.
    pub(crate) fn quoted(&self, position: usize) -> String {
        self.name(position).map_or_else(|| format!("id {}", self.shown(position)), |name| format!("`{name}`"))
    }

    /// The last token that is no padding.
    pub(crate) fn last(&self) -> Option<usize> {
        self.real.iter().rposition(|is_real| *is_real)
    }

    /// The first token that is no padding.
    pub(crate) fn first(&self) -> Option<usize> {
        self.real.iter().position(|is_real| *is_real)
    }
}

impl Given {
    /// What the arguments say; `None`: nothing.
    pub(crate) fn read(args: &InputArgs, source: &Source) -> Result<Option<Self>, CliError> {
        let tokenizer = || Tokenizer::load(&source.dir);
        if let Some(path) = &args.inputs {
            let origin = path.display().to_string();
            return Ok(Some(Self::new(file::read(path)?, origin, tokenizer()?)));
        }
        if let Some(ids) = &args.ids {
            return Ok(Some(Self::new(one_sequence(ids.clone()), "--ids".to_owned(), tokenizer()?)));
        }
        if let Some(text) = &args.text {
            let tokenizer = Tokenizer::needed(&source.dir)?;
            let ids = tokenizer.encode(text)?;
            return Ok(Some(Self::new(one_sequence(ids), "--text".to_owned(), Some(tokenizer))));
        }
        if source.is_default {
            let ids = example();
            return Ok(Some(Self::new(one_sequence(ids), "built-in example".to_owned(), tokenizer()?)));
        }
        Ok(None)
    }

    /// `length` times the first token.
    pub(crate) fn of_length(length: usize) -> Self {
        Self::new(one_sequence(vec![0; length]), "any".to_owned(), None)
    }

    fn new(tensors: NamedInputs, origin: String, tokenizer: Option<Tokenizer>) -> Self {
        let tokens = tokens(&tensors, tokenizer.as_ref());
        Self { tensors, origin, tokens, tokenizer }
    }

    /// The same for `model`, which computes in `dtype`: embeddings are in that type, ids have to be in its vocabulary.
    pub(crate) fn suited(mut self, model: &AnyModel, dtype: DType) -> Self {
        self.tensors = self.tensors.float_dtype(dtype);
        let vocab_size = model.config_json().get("vocab_size").and_then(serde_json::Value::as_u64);
        if let Some(size) = vocab_size.and_then(|size| usize::try_from(size).ok()) {
            self.tensors = self.tensors.vocab_size(size);
        }
        self
    }

    /// Tokens as text, if there is a tokenizer.
    pub(crate) fn decode(&self, ids: &[i64]) -> Option<String> {
        self.tokenizer.as_ref()?.decode(ids)
    }

    /// A token of any sequence as part of a sentence.
    pub(crate) fn quoted(&self, id: i64) -> String {
        self.tokenizer.as_ref().map_or_else(|| format!("id {id}"), |tokenizer| format!("`{}`", tokenizer.name(id)))
    }

    /// `input_ids [1, 12]`, and so on for each input.
    pub(crate) fn shapes(&self) -> String {
        let shapes = self.tensors.iter().map(|(name, data)| format!("{name} {:?}", data.shape().to_vec()));
        shapes.collect::<Vec<_>>().join(", ")
    }
}

/// The ids that the tiny decoder's tokenizer gives the example: `<s>` is 2, and `a` is 3.
fn example() -> Vec<i64> {
    let letters = EXAMPLE.bytes().filter(u8::is_ascii_lowercase);
    std::iter::once(2).chain(letters.map(|letter| i64::from(letter - b'a') + 3)).collect()
}

fn one_sequence(ids: Vec<i64>) -> NamedInputs {
    let length = ids.len();
    NamedInputs::new().with("input_ids", TensorData::new(ids, [1, length]))
}

/// The first sequence of `input_ids`.
fn tokens(tensors: &NamedInputs, tokenizer: Option<&Tokenizer>) -> Option<Tokens> {
    let first_row = |name| {
        let data: &TensorData = tensors.get(name)?;
        let [_, length] = data.shape()[..] else { return None };
        Some(data.iter::<i64>().take(length).collect::<Vec<i64>>())
    };
    let ids = first_row("input_ids")?;
    let mask = first_row("attention_mask").filter(|mask| mask.len() == ids.len());
    let real = mask.map_or_else(|| vec![true; ids.len()], |mask| mask.iter().map(|value| *value != 0).collect());
    let names = tokenizer.map(|tokenizer| ids.iter().map(|id| tokenizer.name(*id)).collect());
    Some(Tokens { ids, real, names })
}
