//! Settings of the reference's `generate` that are not followed here, and the values with which they do nothing.

use serde_json::{Map, Value};

/// The value with which a setting does nothing; `null` does nothing for any.
#[derive(Clone, Copy)]
enum Neutral {
    /// This number.
    Number(f64),
    /// This number or a smaller one.
    AtMost(f64),
    /// An empty list or object.
    Empty,
    /// `false`.
    False,
}

use Neutral::{AtMost, Empty, False, Number};

/// Those that hold for any way of choosing tokens.
const ALWAYS: &[(&str, Neutral)] = &[
    ("assistant_early_exit", Empty),
    ("bad_words_ids", Empty),
    ("constraints", Empty),
    ("dola_layers", Empty),
    ("encoder_no_repeat_ngram_size", AtMost(0.0)),
    ("encoder_repetition_penalty", Number(1.0)),
    ("exponential_decay_length_penalty", Empty),
    ("force_words_ids", Empty),
    ("guidance_scale", Number(1.0)),
    ("max_time", Empty),
    ("min_length", AtMost(0.0)),
    ("min_new_tokens", AtMost(0.0)),
    ("no_repeat_ngram_size", AtMost(0.0)),
    ("num_beam_groups", AtMost(1.0)),
    ("num_beams", AtMost(1.0)),
    ("num_return_sequences", AtMost(1.0)),
    ("penalty_alpha", AtMost(0.0)),
    ("remove_invalid_values", False),
    ("repetition_penalty", Number(1.0)),
    ("sequence_bias", Empty),
    ("stop_strings", Empty),
    ("token_healing", False),
    ("watermarking_config", Empty),
];

/// Those that hold only where tokens are drawn.
const SAMPLING: &[(&str, Neutral)] = &[
    ("epsilon_cutoff", AtMost(0.0)),
    ("eta_cutoff", AtMost(0.0)),
    ("min_p", AtMost(0.0)),
    ("top_h", Empty),
    ("typical_p", Number(1.0)),
];

impl Neutral {
    fn is(self, value: &Value) -> bool {
        match (self, value) {
            (_, Value::Null) => true,
            (Number(neutral), found) => found.as_f64() == Some(neutral),
            (AtMost(neutral), found) => found.as_f64().is_some_and(|found| found <= neutral),
            (Empty, Value::Array(list)) => list.is_empty(),
            (Empty, Value::Object(fields)) => fields.is_empty(),
            (False, found) => *found == Value::Bool(false),
            (Empty, _) => false,
        }
    }
}

/// The settings of `extra` that would change what is generated: each with its value, sorted.
pub(super) fn in_force(extra: &Map<String, Value>, do_sample: bool) -> Vec<String> {
    let sampling = SAMPLING.iter().filter(|_| do_sample);
    let settings = ALWAYS.iter().chain(sampling);
    let found = settings.filter_map(|(name, neutral)| {
        let value = extra.get(*name).filter(|value| !neutral.is(value))?;
        Some(format!("`{name}` is {value}"))
    });
    let mut found: Vec<String> = found.collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(extra: Value, do_sample: bool) -> Vec<String> {
        let Value::Object(extra) = extra else { unreachable!("the tests pass objects") };
        in_force(&extra, do_sample)
    }

    #[test]
    fn neutral_values_do_nothing() {
        let neutral = json!({
            "repetition_penalty": 1.0, "num_beams": 1, "no_repeat_ngram_size": 0, "bad_words_ids": null,
            "sequence_bias": {}, "typical_p": 1, "min_p": 0.0, "guidance_scale": 1,
            "remove_invalid_values": false, "transformers_version": "5.0.0", "length_penalty": 2.0
        });
        assert_eq!(found(neutral, true), Vec::<String>::new());
    }

    #[test]
    fn others_are_named_with_their_values() {
        let set = json!({"repetition_penalty": 1.1, "num_beams": 4, "force_words_ids": [[2]], "min_p": 0.1});
        let always = ["`force_words_ids` is [[2]]", "`num_beams` is 4", "`repetition_penalty` is 1.1"];
        assert_eq!(found(set.clone(), false), always);
        assert_eq!(found(set, true).len(), 4);
        assert_eq!(found(json!({"num_beams": "many"}), false), ["`num_beams` is \"many\""]);
    }
}
