//! What the model is run on.

mod any;
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
    /// Those that a decoder reads which answers an encoder.
    pub(crate) decoder_tokens: Option<Tokens>,
    /// The decoder's tokens are the tool's.
    begun: bool,
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

/// The tokens that attention weights are between.
#[derive(Clone, Copy, Default)]
pub(crate) struct ReadBy<'a> {
    pub(crate) queries: Option<&'a Tokens>,
    pub(crate) keys: Option<&'a Tokens>,
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

    /// Anything that `model` takes: `length` times the first token, an image of the size that it was trained on, and so
    /// on.
    pub(crate) fn any(length: usize, model: &AnyModel) -> Self {
        Self::new(any::inputs(length, model), "any".to_owned(), None)
    }

    fn new(tensors: NamedInputs, origin: String, tokenizer: Option<Tokenizer>) -> Self {
        let named = |ids, mask| tokens(&tensors, [ids, mask], tokenizer.as_ref());
        let decoder_tokens = named("decoder_input_ids", "decoder_attention_mask");
        Self { tokens: named("input_ids", "attention_mask"), decoder_tokens, tensors, origin, begun: false, tokenizer }
    }

    /// The tokens that the queries and the keys of the attention weights called `key` are, as far as they are tokens.
    pub(crate) fn read_by(&self, key: &str) -> ReadBy<'_> {
        let (text, decoder) = (self.tokens.as_ref(), self.decoder_tokens.as_ref());
        let [queries, keys] = match key {
            _ if key.starts_with("vision") || key.starts_with("image_outputs.") => [None, None],
            _ if key.ends_with("cross_attentions") => match decoder {
                Some(decoder) => [Some(decoder), text],
                // what the encoder read is not known
                None => [text, None],
            },
            _ if key.starts_with("decoder_") => [decoder, decoder],
            _ => [text, text],
        };
        ReadBy { queries, keys }
    }

    /// Whether the caller gave a tensor called `name`, rather than the tool.
    pub(crate) fn is_callers(&self, name: &str) -> bool {
        self.tensors.get(name).is_some() && !(self.begun && name == "decoder_input_ids")
    }

    /// The tokens that a language model continues.
    pub(crate) fn continued(&self) -> Option<&Tokens> {
        self.decoder_tokens.as_ref().or(self.tokens.as_ref())
    }

    /// The same for `model`, which computes in `dtype`: embeddings are in that type, ids have to be in its vocabulary.
    pub(crate) fn suited(mut self, model: &AnyModel, dtype: DType) -> Self {
        self.tensors = self.tensors.float_dtype(dtype);
        let vocab_size = model.config_json().get("vocab_size").and_then(serde_json::Value::as_u64);
        if let Some(size) = vocab_size.and_then(|size| usize::try_from(size).ok()) {
            self.tensors = self.tensors.vocab_size(size);
        }
        any::begin_decoder(self, model)
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

/// The first sequence of `ids`, and which of its tokens are no padding.
fn tokens(tensors: &NamedInputs, [ids, mask]: [&str; 2], tokenizer: Option<&Tokenizer>) -> Option<Tokens> {
    let first_row = |name| {
        let data: &TensorData = tensors.get(name)?;
        let [_, length] = data.shape()[..] else { return None };
        Some(data.iter::<i64>().take(length).collect::<Vec<i64>>())
    };
    let ids = first_row(ids)?;
    let mask = first_row(mask).filter(|mask| mask.len() == ids.len());
    let real = mask.map_or_else(|| vec![true; ids.len()], |mask| mask.iter().map(|value| *value != 0).collect());
    let names = tokenizer.map(|tokenizer| ids.iter().map(|id| tokenizer.name(*id)).collect());
    Some(Tokens { ids, real, names })
}
