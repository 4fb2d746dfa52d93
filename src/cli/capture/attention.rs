//! What can be said of attention weights in a few numbers.

use super::record::Value;
use crate::cli::inputs::Tokens;
use serde::Serialize;

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
    pub(crate) fn most_attended(&self, tokens: Option<&Tokens>) -> Option<(usize, f64)> {
        let queries: Vec<usize> = (0..self.queries).filter(|query| self.is_real(*query, tokens)).collect();
        let of_key = |key: usize| {
            let rows = (0..self.heads).flat_map(|head| queries.iter().map(move |query| (head, *query)));
            mean(rows.filter_map(|(head, query)| self.row(head, query).get(key)).map(|weight| f64::from(*weight)))
        };
        let all = (0..self.keys).filter_map(|key| Some((key, of_key(key)?)));
        all.max_by(|one, other| one.1.total_cmp(&other.1))
    }

    /// What each head does in the first sequence.
    pub(crate) fn heads(&self, key: &str, layer: usize, tokens: Option<&Tokens>) -> Vec<Head> {
        let tokens = tokens.filter(|tokens| self.is_of(tokens));
        let last = tokens.and_then(Tokens::last).unwrap_or(self.queries - 1);
        (0..self.heads).map(|head| self.head(key, layer, head, last, tokens)).collect()
    }

    fn head(&self, key: &str, layer: usize, head: usize, last: usize, tokens: Option<&Tokens>) -> Head {
        let row = self.row(head, last).iter().enumerate();
        let (most_attended, weight) = row.max_by(|one, other| one.1.total_cmp(other.1)).unwrap_or((0, &0.0));
        let queries = || (0..self.queries).filter(|query| self.is_real(*query, tokens));
        let on = |query: usize, key: usize| self.row(head, query).get(key).map_or(0.0, |weight| f64::from(*weight));
        let first = tokens.and_then(Tokens::first);
        let after_same = |query: usize| {
            let keys = earlier_followers(tokens?, query);
            (!keys.is_empty()).then(|| keys.into_iter().map(|key| on(query, key)).sum::<f64>())
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

    fn is_real(&self, query: usize, tokens: Option<&Tokens>) -> bool {
        tokens.filter(|tokens| self.is_of(tokens)).is_none_or(|tokens| tokens.real.get(query).copied().unwrap_or(true))
    }
}

/// The positions right after earlier occurrences of the token at `query`.
fn earlier_followers(tokens: &Tokens, query: usize) -> Vec<usize> {
    let Some(token) = tokens.ids.get(query) else { return Vec::new() };
    let is_same = |at: &usize| tokens.ids.get(*at) == Some(token) && tokens.real.get(*at) == Some(&true);
    (0..query).filter(is_same).map(|at| at + 1).filter(|at| *at != query).collect()
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
