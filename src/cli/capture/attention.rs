//! What can be said of attention weights in a few numbers.

use super::record::Value;
use crate::cli::inputs::{ReadBy, Tokens};
use serde::Serialize;
use std::collections::HashMap;

/// The weights of one layer, on the host.
pub(crate) struct Weights {
    heads: usize,
    queries: usize,
    keys: usize,
    values: Vec<f32>,
}

/// What one head does in the first sequence.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Head {
    /// The key that it was recorded for.
    pub(crate) key: String,
    pub(crate) layer: usize,
    pub(crate) head: usize,
    /// The mean entropy of its queries, in bits.
    pub(crate) entropy: f64,
    /// The key that the last token looks at most, and how much.
    pub(crate) most_attended: usize,
    pub(crate) weight: f64,
    /// Mean weight on the token before.
    pub(crate) previous: Option<f64>,
    /// Mean weight on tokens that followed an earlier occurrence of the same token; only of tokens that have one.
    pub(crate) after_same: Option<f64>,
    /// Mean weight on the first token.
    pub(crate) first: Option<f64>,
}

impl Weights {
    /// The weights in `value`, if that is what it holds.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        let [_, heads, queries, keys] = *value.shape() else { return None };
        if !value.is_attention() || heads * queries * keys == 0 {
            return None;
        }
        Some(Self { heads, queries, keys, values: value.data.iter::<f32>().collect() })
    }

    /// The weights of one query.
    fn row(&self, head: usize, query: usize) -> &[f32] {
        let start = (head * self.queries + query) * self.keys;
        self.values.get(start..start + self.keys).unwrap_or_default()
    }

    /// The mean entropy of all queries of all sequences, in bits.
    pub(crate) fn entropy(&self) -> f64 {
        mean(self.values.chunks_exact(self.keys).map(entropy)).unwrap_or(0.0)
    }

    /// The key that the first sequence's queries look at most, all heads together, and its mean weight.
    pub(crate) fn most_attended(&self, read_by: ReadBy<'_>) -> Option<(usize, f64)> {
        let tokens = read_by.queries;
        let queries: Vec<usize> = (0..self.queries).filter(|query| self.is_real(*query, tokens)).collect();
        let of_key = |key: usize| {
            let rows = (0..self.heads).flat_map(|head| queries.iter().map(move |query| (head, *query)));
            mean(rows.filter_map(|(head, query)| self.row(head, query).get(key)).map(|weight| f64::from(*weight)))
        };
        let all = (0..self.keys).filter_map(|key| Some((key, of_key(key)?)));
        all.max_by(|one, other| one.1.total_cmp(&other.1))
    }

    /// What each head does in the first sequence.
    pub(crate) fn heads(&self, key: &str, layer: usize, tokens: &Tokens, earlier: &Earlier) -> Vec<Head> {
        (0..self.heads).map(|head| self.head(key, layer, head, tokens, earlier)).collect()
    }

    fn head(&self, key: &str, layer: usize, head: usize, tokens: &Tokens, earlier: &Earlier) -> Head {
        let last = tokens.last().unwrap_or(self.queries - 1);
        let row = self.row(head, last).iter().enumerate();
        let (most_attended, weight) = row.max_by(|one, other| one.1.total_cmp(other.1)).unwrap_or((0, &0.0));
        let queries = || (0..self.queries).filter(|query| self.is_real(*query, Some(tokens)));
        let on = |query: usize, key: usize| self.row(head, query).get(key).map_or(0.0, |weight| f64::from(*weight));
        let first = tokens.first();
        let after_same = |query: usize| {
            let mut keys = earlier.followers(query).peekable();
            keys.peek().is_some().then(|| keys.map(|key| on(query, key)).sum::<f64>())
        };
        Head {
            key: key.to_owned(),
            layer,
            head,
            entropy: mean(queries().map(|query| entropy(self.row(head, query)))).unwrap_or(0.0),
            most_attended,
            weight: f64::from(*weight),
            previous: first
                .and_then(|first| mean(queries().filter(|query| *query > first).map(|query| on(query, query - 1)))),
            after_same: mean(queries().filter_map(after_same)),
            first: first.and_then(|first| mean(queries().filter(|query| *query > first).map(|query| on(query, first)))),
        }
    }

    /// Whether queries and keys both are these tokens.
    pub(crate) fn is_of(&self, tokens: &Tokens) -> bool {
        [self.queries, self.keys] == [tokens.ids.len(); 2]
    }

    /// The keys, if they are these tokens.
    pub(crate) fn keys<'a>(&self, read_by: ReadBy<'a>) -> Option<&'a Tokens> {
        read_by.keys.filter(|tokens| tokens.ids.len() == self.keys)
    }

    fn is_real(&self, query: usize, tokens: Option<&Tokens>) -> bool {
        tokens
            .filter(|tokens| tokens.ids.len() == self.queries)
            .is_none_or(|tokens| tokens.real.get(query).copied().unwrap_or(true))
    }
}

/// Where each token occurred earlier: the same for all heads of all layers.
pub(crate) struct Earlier {
    /// The positions of each different token, padding left out.
    positions: Vec<Vec<usize>>,
    /// For each position, which token it is, and how many of the token's positions are before it.
    of: Vec<(usize, usize)>,
}

impl Earlier {
    pub(crate) fn of(tokens: &Tokens) -> Self {
        let mut known = HashMap::new();
        let mut positions: Vec<Vec<usize>> = Vec::new();
        let occurrences = tokens.ids.iter().zip(&tokens.real).enumerate().map(|(at, (id, is_real))| {
            let token = *known.entry(*id).or_insert(positions.len());
            if token == positions.len() {
                positions.push(Vec::new());
            }
            let before = positions[token].len();
            if *is_real {
                positions[token].push(at);
            }
            (token, before)
        });
        let of = occurrences.collect();
        Self { positions, of }
    }

    /// The positions right after earlier occurrences of the token at `query`.
    fn followers(&self, query: usize) -> impl Iterator<Item = usize> {
        let (token, before) = self.of.get(query).copied().unwrap_or_default();
        let earlier = self.positions.get(token).and_then(|positions| positions.get(..before)).unwrap_or_default();
        earlier.iter().map(|at| at + 1).filter(move |at| *at != query)
    }
}

fn entropy(weights: &[f32]) -> f64 {
    weights.iter().map(|weight| f64::from(*weight)).filter(|weight| *weight > 0.0).map(|w| -w * w.log2()).sum()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values {
        sum += value;
        count += 1.0;
    }
    (count > 0.0).then(|| sum / count)
}

/// What the key that `head` looks at most is to the last token, in words.
pub(crate) fn relation(head: &Head, tokens: &Tokens) -> Option<String> {
    let (last, key) = (tokens.last()?, head.most_attended);
    let same = |at: usize| tokens.ids.get(at) == tokens.ids.get(last);
    if key == last {
        Some("itself".to_owned())
    } else if key + 1 == last {
        Some("the token before".to_owned())
    } else if key > 0 && key < last && same(key - 1) {
        Some(format!("came after {} before", tokens.quoted(last)))
    } else if same(key) {
        Some("the same token".to_owned())
    } else if Some(key) == tokens.first() {
        Some("the first token".to_owned())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_followed_the_same_token_earlier() {
        let mut tokens = Tokens::of_ids(vec![5, 6, 5, 5, 7, 6, 5]);
        let followers = |tokens: &Tokens| {
            let earlier = Earlier::of(tokens);
            (0..8).map(|query| earlier.followers(query).collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        let expected: [&[usize]; 8] = [&[], &[], &[1], &[1], &[], &[2], &[1, 3, 4], &[]];
        assert_eq!(followers(&tokens), expected);
        // padding counts for nothing that comes later
        tokens.real[0] = false;
        let expected: [&[usize]; 8] = [&[], &[], &[], &[], &[], &[2], &[3, 4], &[]];
        assert_eq!(followers(&tokens), expected);
    }
}
