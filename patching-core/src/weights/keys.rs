//! Keys of checkpoints: prefixes of base models, near matches.

use strsim::normalized_levenshtein;

/// Keys looked at for near matches; more would take long for a checkpoint of quite another model.
const LOOKED_AT: usize = 2_000;
/// Near matches offered.
const OFFERED: usize = 3;
/// Longer keys are not compared: the time grows with the square of the length.
const COMPARED_LENGTH: usize = 200;
const ALIKE: f64 = 0.75;

/// Keys among `known` that look like `key`, the most similar first.
pub(crate) fn near(key: &str, known: &[&str]) -> Vec<String> {
    if key.len() > COMPARED_LENGTH {
        return Vec::new();
    }
    let mut alike: Vec<_> = known
        .iter()
        .take(LOOKED_AT)
        .filter(|other| other.len() <= COMPARED_LENGTH && other.len().abs_diff(key.len()) <= key.len() / 3)
        .map(|other| (normalized_levenshtein(key, other), *other))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .collect();
    // a key of the same layer is meant, where there is one
    let layer =
        |key: &str| key.split('.').find(|segment| segment.bytes().all(|byte| byte.is_ascii_digit())).map(str::to_owned);
    let own = layer(key);
    if alike.iter().any(|(_, other)| layer(other) == own) {
        alike.retain(|(_, other)| layer(other) == own);
    }
    alike.sort_by(|(one, a), (other, b)| other.total_cmp(one).then(a.cmp(b)));
    alike.into_iter().take(OFFERED).map(|(_, other)| other.to_owned()).collect()
}

/// How a key of a head is one of its base model, and the other way round.
pub(crate) struct PrefixChange {
    /// With its dot; `None` for a model without a prefix.
    prefix: Option<String>,
}

impl PrefixChange {
    pub(crate) fn new(base_model_prefix: &str) -> Self {
        let prefix = base_model_prefix.trim_matches('.');
        Self { prefix: (!prefix.is_empty()).then(|| format!("{prefix}.")) }
    }

    /// Whether all of `keys` begin with the prefix.
    pub(crate) fn is_on_all<'k>(&self, mut keys: impl Iterator<Item = &'k str>) -> bool {
        self.prefix.as_ref().is_some_and(|prefix| keys.all(|key| key.starts_with(prefix.as_str())))
    }

    /// Whether any of `keys` begins with the prefix.
    pub(crate) fn is_on_any<'k>(&self, mut keys: impl Iterator<Item = &'k str>) -> bool {
        self.prefix.as_ref().is_some_and(|prefix| keys.any(|key| key.starts_with(prefix.as_str())))
    }

    /// What `key` may be called in the other kind of model.
    pub(crate) fn candidates(&self, key: &str) -> Vec<String> {
        let Some(prefix) = &self.prefix else {
            return Vec::new();
        };
        let without = key.strip_prefix(prefix.as_str()).map(str::to_owned);
        [Some(format!("{prefix}{key}")), without].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_a_whole_segment() {
        let change = PrefixChange::new("model");
        assert_eq!(change.candidates("model.a"), ["model.model.a", "a"]);
        assert_eq!(change.candidates("modelXa.weight"), ["model.modelXa.weight"]);
        assert!(PrefixChange::new("").candidates("a").is_empty());
    }

    #[test]
    fn near_matches_come_most_similar_first() {
        let known = ["layers.0.attn.q_proj.weight", "layers.0.self_attn.q_prj.weight", "lm_head.weight"];
        let found = near("layers.0.self_attn.q_proj.weight", &known);
        assert_eq!(found, ["layers.0.self_attn.q_prj.weight", "layers.0.attn.q_proj.weight"]);
    }
}
