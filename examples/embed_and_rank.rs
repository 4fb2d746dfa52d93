//! Sentences as vectors, and which of them is nearest to a query: after each layer of a BERT model, to see how early it
//! knows.
//!
//! `cargo run --release --example embed_and_rank -- --checkpoint FOLDER [QUERY SENTENCE...]`
//!
//! The folder is that of a BERT model with its `tokenizer.json`, such as `sentence-transformers/all-MiniLM-L6-v2`. Without
//! one, a tiny model with random weights serves, and a tokenizer that gives each word some token: it knows which words
//! are alike, and nothing else.

use burn::prelude::*;
use burnlens::burn_models::TextInputs;
use burnlens::burn_models::bert::BertModel;
use burnlens::prelude::*;
use std::error::Error;
use std::path::PathBuf;
use tokenizers::Tokenizer;

const TINY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/burn-models/tests/fixtures/bert");
const QUERY: &str = "the cat sleeps in the sun";
const SENTENCES: [&str; 5] = [
    "interest rates went up again",
    "in the sun sleeps the cat",
    "bread needs patience",
    "the bridge is closed",
    "a dog sleeps in the rain",
];

/// What makes tokens of text.
enum Words {
    Tokenizer(Box<Tokenizer>),
    /// Some token for each word, of so many.
    Any(i64),
}

impl Words {
    /// Tokens of each text.
    fn tokens(&self, texts: &[String]) -> Result<Vec<Vec<i64>>, Box<dyn Error>> {
        match self {
            Self::Tokenizer(tokenizer) => {
                let encode = |text: &String| match tokenizer.encode(text.as_str(), true) {
                    Ok(encoding) => Ok(encoding.get_ids().iter().map(|id| i64::from(*id)).collect()),
                    Err(error) => Err(error as Box<dyn Error>),
                };
                texts.iter().map(encode).collect()
            }
            Self::Any(vocabulary) => {
                // 0 is padding
                let token = |word: &str| {
                    1 + word.bytes().fold(7, |hash: i64, byte| (hash * 31 + i64::from(byte)) % (vocabulary - 1))
                };
                Ok(texts.iter().map(|text| text.split_whitespace().map(token).collect()).collect())
            }
        }
    }
}

/// Rows of tokens, filled up at the end, and where they are real: `[texts, longest]` both.
fn padded(tokens: &[Vec<i64>], device: &Device) -> (Tensor<2, Int>, Tensor<2, Int>) {
    let longest = tokens.iter().map(Vec::len).max().unwrap_or_default();
    let row = |tokens: &Vec<i64>, at: usize| tokens.get(at).copied();
    let values = |value: fn(Option<i64>) -> i64| -> Tensor<2, Int> {
        let flat: Vec<i64> =
            tokens.iter().flat_map(|tokens| (0..longest).map(move |at| value(row(tokens, at)))).collect();
        Tensor::<1, Int>::from_data(flat.as_slice(), device).reshape([tokens.len(), longest])
    };
    (values(|token| token.unwrap_or(0)), values(|token| i64::from(token.is_some())))
}

/// The mean of the hidden states of each text's tokens, of length 1: `[texts, seq, hidden]` to `[texts, hidden]`.
fn pooled(hidden_states: Tensor<3>, mask: &Tensor<2, Int>) -> Tensor<2> {
    let mask = mask.clone().float().unsqueeze_dim::<3>(2);
    let mean = (hidden_states * mask.clone()).sum_dim(1) / mask.sum_dim(1);
    let mean: Tensor<2> = mean.squeeze_dim(1);
    let length = mean.clone().square().sum_dim(1).sqrt();
    mean / length.clamp_min(1e-12)
}

/// The cosines of the first text with each of the others.
fn cosines(embeddings: &Tensor<2>) -> Vec<f32> {
    let [texts, _] = embeddings.dims();
    let query = embeddings.clone().slice_dim(0, 0..1);
    let others = embeddings.clone().slice_dim(0, 1..texts);
    others.matmul(query.transpose()).into_data().iter::<f32>().collect()
}

/// The index of the largest.
fn best(cosines: &[f32]) -> usize {
    let by_value = |a: &(usize, &f32), b: &(usize, &f32)| a.1.total_cmp(b.1);
    cosines.iter().enumerate().max_by(by_value).map_or(0, |(at, _)| at)
}

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--checkpoint").skip(1);
    let folder = arguments.next().map(PathBuf::from);
    let mut texts: Vec<String> = arguments.collect();
    if texts.len() < 2 {
        texts = std::iter::once(QUERY).chain(SENTENCES).map(str::to_owned).collect();
    }

    let device = Device::flex();
    let model = BertModel::from_pretrained(folder.clone().unwrap_or_else(|| TINY.into()), &device)?;
    let words = match &folder {
        Some(folder) => match Tokenizer::from_file(folder.join("tokenizer.json")) {
            Ok(mut tokenizer) => {
                // as short as they are; the rows are filled up below
                tokenizer.with_padding(None);
                Words::Tokenizer(Box::new(tokenizer))
            }
            Err(error) => return Err(error),
        },
        None => Words::Any(model.config().vocab_size as i64),
    };

    let (input_ids, mask) = padded(&words.tokens(&texts)?, &device);
    let inputs = TextInputs::new(input_ids).attention_mask(mask.clone());
    let output = model.forward(inputs, &ForwardKwargs::new().output_hidden_states(true))?;

    for (layer, _, hidden_states) in output.hidden_states.iter() {
        let cosines = cosines(&pooled(hidden_states.clone(), &mask));
        let nearest = best(&cosines);
        println!("after layer {layer}: {:.3} {}", cosines[nearest], texts[nearest + 1]);
    }

    let cosines = cosines(&pooled(output.last_hidden_state, &mask));
    let mut ranking: Vec<usize> = (0..cosines.len()).collect();
    ranking.sort_by(|a, b| cosines[*b].total_cmp(&cosines[*a]));
    println!("\nnearest to: {}", texts[0]);
    for at in &ranking {
        println!("{:.3} {}", cosines[*at], texts[at + 1]);
    }
    if folder.is_none() {
        // all of the query's words, in another order
        assert_eq!(ranking[0], 1);
    }
    Ok(())
}
