//! Repeated sequences of random letters, and the tokenizer that reads them.

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

/// `<pad>`, `<unk>` and `<s>`, then the letters.
pub const SPECIAL: [&str; 3] = ["<pad>", "<unk>", "<s>"];
/// The token that begins a sequence.
pub const BEGIN: i64 = 2;
/// How many tokens there are.
pub const VOCABULARY: usize = SPECIAL.len() + 26;

/// A block of different letters, repeated until the sequence is full.
pub struct Sequence {
    /// The token ids, `<s>` first.
    pub tokens: Vec<i64>,
    /// The length of the block.
    pub period: usize,
}

impl Sequence {
    /// The positions of tokens that have been there one block earlier.
    pub fn repeated(&self) -> std::ops::Range<usize> {
        self.period + 1..self.tokens.len()
    }

    /// The positions right after earlier occurrences of the token at `at`.
    pub fn after_earlier(&self, at: usize) -> Vec<usize> {
        let earlier = (1..at).rev().skip(self.period - 1).step_by(self.period);
        earlier.map(|position| position + 1).collect()
    }
}

/// Where sequences come from.
pub struct Source {
    random: StdRng,
    length: usize,
}

impl Source {
    /// Sequences of `length` tokens, the same for the same seed.
    pub fn new(seed: u64, length: usize) -> Self {
        Self { random: StdRng::seed_from_u64(seed), length }
    }

    /// The next sequence.
    pub fn next(&mut self) -> Sequence {
        let mut letters: Vec<i64> = (SPECIAL.len() as i64..VOCABULARY as i64).collect();
        letters.shuffle(&mut self.random);
        let longest = (self.length / 2 - 1).min(letters.len());
        let period = self.random.random_range(3..=longest);
        letters.truncate(period);
        let tokens = std::iter::once(BEGIN).chain(letters.iter().copied().cycle()).take(self.length).collect();
        Sequence { tokens, period }
    }
}

/// The content of `tokenizer.json`: words are separated by spaces, and `<s>` comes first.
#[allow(dead_code, reason = "the test that shares this file does not write a tokenizer")]
pub fn tokenizer() -> Value {
    let letters = ('a'..='z').map(String::from);
    let words = SPECIAL.iter().map(|word| (*word).to_owned()).chain(letters);
    let vocabulary: serde_json::Map<_, _> = words.enumerate().map(|(id, word)| (word, json!(id))).collect();
    let special = SPECIAL.iter().enumerate().map(|(id, word)| {
        json!({
            "id": id, "content": word, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
            "special": true,
        })
    });
    let begin = SPECIAL[BEGIN as usize];
    let begins = json!({ "SpecialToken": { "id": begin, "type_id": 0 } });
    let sequence = |id: &str| json!({ "Sequence": { "id": id, "type_id": 0 } });
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": special.collect::<Vec<_>>(),
        "normalizer": null,
        "pre_tokenizer": { "type": "WhitespaceSplit" },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [begins, sequence("A")],
            "pair": [begins, sequence("A"), sequence("B")],
            "special_tokens": { begin: { "id": begin, "ids": [BEGIN], "tokens": [begin] } },
        },
        "decoder": null,
        "model": { "type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>" },
    })
}
