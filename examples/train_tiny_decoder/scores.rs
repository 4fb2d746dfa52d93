//! What the heads of a model look at in repeated sequences.

use super::data::Sequence;
use burn::tensor::{Device, Int, Tensor, TensorData};
use burnlens::burn_models::llama::LlamaForCausalLM;
use burnlens::prelude::*;
use std::error::Error;

/// How a model does on sequences that it has never seen.
pub struct Scores {
    /// The share of foreseeable tokens that it foresees.
    pub accuracy: f64,
    /// For each layer and head, how much attention a repeated token gives to the token right before it.
    pub previous: Vec<Vec<f64>>,
    /// For each layer and head, how much attention a repeated token gives to tokens that came after its earlier
    /// occurrences: what induction heads look at.
    pub induction: Vec<Vec<f64>>,
}

impl Scores {
    /// Runs `model` on `sequences`, all of the same length, and records its attention.
    pub fn of(model: &LlamaForCausalLM, sequences: &[Sequence], device: &Device) -> Result<Self, Box<dyn Error>> {
        let kwargs = ForwardKwargs::new().output_attentions(true).use_cache(false);
        let output = model.forward(token_tensor(sequences, device), &kwargs)?;

        let choices = output.logits.argmax(2).to_data();
        let choices: Vec<i64> = choices.iter::<i64>().collect();
        let (mut right, mut foreseeable) = (0.0, 0.0);
        for (sequence, chosen) in sequences.iter().zip(choices.chunks_exact(sequences[0].tokens.len())) {
            for at in sequence.repeated().skip(1) {
                foreseeable += 1.0;
                right += f64::from(u8::from(chosen[at - 1] == sequence.tokens[at]));
            }
        }

        let (mut previous, mut induction) = (Vec::new(), Vec::new());
        for (_, _, weights) in output.attentions.iter() {
            previous.push(mean_weight(weights, sequences, |_, query| vec![query - 1]));
            induction.push(mean_weight(weights, sequences, Sequence::after_earlier));
        }
        Ok(Self { accuracy: right / foreseeable, previous, induction })
    }

    /// The largest of a layer's scores, and its head.
    #[allow(dead_code, reason = "the test of the committed weights uses it, the training does not")]
    pub fn best(scores: &[f64]) -> (usize, f64) {
        let best = scores.iter().copied().enumerate().max_by(|one, other| one.1.total_cmp(&other.1));
        best.unwrap_or((0, 0.0))
    }
}

/// The token ids of `sequences` as one batch.
pub fn token_tensor(sequences: &[Sequence], device: &Device) -> Tensor<2, Int> {
    rows(sequences.iter().map(|sequence| sequence.tokens.clone()).collect(), device)
}

/// Rows of the same length as a tensor.
pub fn rows(rows: Vec<Vec<i64>>, device: &Device) -> Tensor<2, Int> {
    let shape = [rows.len(), rows.first().map_or(0, Vec::len)];
    Tensor::from_data(TensorData::new(rows.concat(), shape), device)
}

/// For each head of `weights`, `[batch, heads, query, key]`: the mean weight that repeated tokens give to all
/// `wanted` keys together.
fn mean_weight(
    weights: &Tensor<4>,
    sequences: &[Sequence],
    wanted: impl Fn(&Sequence, usize) -> Vec<usize>,
) -> Vec<f64> {
    let [_, heads, queries, keys] = weights.dims();
    let data = weights.to_data();
    let values: Vec<f32> = data.iter::<f32>().collect();
    let mean = |head: usize| {
        let (mut sum, mut count) = (0.0, 0.0);
        for (row, sequence) in sequences.iter().enumerate() {
            for query in sequence.repeated() {
                let start = ((row * heads + head) * queries + query) * keys;
                sum += wanted(sequence, query).into_iter().map(|key| f64::from(values[start + key])).sum::<f64>();
                count += 1.0;
            }
        }
        sum / count
    };
    (0..heads).map(mean).collect()
}
