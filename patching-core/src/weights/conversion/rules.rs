//! The rules that apply to one model.

use std::sync::Arc;

use serde_json::Value;

use super::mapping::{ConversionMapping, Converter, Renaming, Rule, RuleKind};
use super::pattern::Pattern;
use crate::class::is_within;

/// A model inside another, whose rules apply to its own part of a checkpoint only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submodel {
    /// Where it is, from the model (`vision_model`).
    pub path: String,
    /// Its class name.
    pub class_name: String,
    /// The model type of its config.
    pub model_type: String,
}

impl Submodel {
    /// The model of the class `class_name` at `path`, with a config of the type `model_type`.
    pub fn new(path: impl Into<String>, class_name: impl Into<String>, model_type: impl Into<String>) -> Self {
        Self { path: path.into(), class_name: class_name.into(), model_type: model_type.into() }
    }
}

/// The rules that apply to one model, in their order.
#[derive(Debug, Clone)]
pub(crate) struct RuleSet {
    rules: Vec<Scoped>,
    base_model_prefix: String,
    config: Value,
}

#[derive(Debug, Clone)]
struct Scoped {
    rule: Arc<Rule>,
    /// The path of the model that it is for; empty for all of it.
    path: String,
    /// Whether somebody asked for it, and wants to know if it does nothing.
    asked_for: bool,
}

impl Scoped {
    /// Whether `rule` for keys under `path` is the same renaming, and one of the two is for a part of what the other is
    /// for.
    fn is_twin(&self, rule: &Rule, path: &str) -> bool {
        matches!((&self.rule.kind, &rule.kind), (RuleKind::Renaming(_), RuleKind::Renaming(_)))
            && (is_within(path, &self.path) || is_within(&self.path, path))
            && self.rule.transform.to_string() == rule.transform.to_string()
    }
}

impl RuleSet {
    pub(crate) fn new(base_model_prefix: &str, config: &Value) -> Self {
        let base_model_prefix = base_model_prefix.trim_matches('.').to_owned();
        Self { rules: Vec::new(), base_model_prefix, config: config.clone() }
    }

    /// Adds the rules of `mapping` for keys under `path`.
    ///
    /// A renaming that is there already, of a mapping under another name of the same model, is not added again: all
    /// renamings that match a key change it, and `mlp` to `mlp.inner` would do so twice.
    pub(crate) fn add(&mut self, mapping: &ConversionMapping, path: &str, asked_for: bool) {
        let earlier = self.rules.len();
        for rule in mapping.rules() {
            let twin = self.rules.iter_mut().take(earlier).find(|known| known.is_twin(rule, path));
            match twin {
                // for all keys that either of them is for
                Some(twin) if path.len() < twin.path.len() => path.clone_into(&mut twin.path),
                Some(_) => {}
                None => self.rules.push(Scoped { rule: Arc::clone(rule), path: path.to_owned(), asked_for }),
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rules with the prefixes that their models have in a checkpoint with these keys.
    ///
    /// A checkpoint of a base model lacks the prefix that a head puts before it, and the other way round.
    pub(crate) fn bind<'k>(&self, keys: impl Iterator<Item = &'k str> + Clone) -> Vec<Bound<'_>> {
        let there = |prefix: &str| keys.clone().any(|key| key.starts_with(prefix));
        let bind = |scoped: &'_ Scoped| {
            if scoped.path.is_empty() {
                return String::new();
            }
            let path = format!("{}.", scoped.path);
            let base = format!("{}.", self.base_model_prefix);
            let outside = path.strip_prefix(&base).map(str::to_owned);
            let inside = (base != ".").then(|| format!("{base}{path}"));
            let prefixes = [Some(path.clone()), outside.filter(|outside| !outside.is_empty()), inside];
            let found = prefixes.into_iter().flatten().find(|prefix| there(prefix));
            // without any of them, the checkpoint of a base model is that of the model at this path itself
            found.unwrap_or_else(|| if path == base { String::new() } else { path })
        };
        let mut known = Vec::<(&str, String)>::new();
        let bound = self.rules.iter().map(|scoped| {
            let prefix = match known.iter().find(|(path, _)| *path == scoped.path) {
                Some((_, prefix)) => prefix.clone(),
                None => {
                    let prefix = bind(scoped);
                    known.push((&scoped.path, prefix.clone()));
                    prefix
                }
            };
            let head_dim = head_dim(&self.config, &scoped.path, &self.base_model_prefix);
            Bound { rule: &scoped.rule, prefix, asked_for: scoped.asked_for, head_dim }
        });
        bound.collect()
    }
}

/// A rule, and what the keys begin with that it applies to.
#[derive(Debug)]
pub(crate) struct Bound<'r> {
    pub(crate) rule: &'r Rule,
    pub(crate) prefix: String,
    pub(crate) asked_for: bool,
    /// The size of a head in its model, or why the config states none.
    pub(crate) head_dim: Result<usize, String>,
}

impl<'r> Bound<'r> {
    pub(crate) fn renaming(&self) -> Option<&'r Renaming> {
        match &self.rule.kind {
            RuleKind::Renaming(renaming) => Some(renaming),
            RuleKind::Converter(_) => None,
        }
    }

    pub(crate) fn converter(&self) -> Option<&'r Converter> {
        match &self.rule.kind {
            RuleKind::Converter(converter) => Some(converter),
            RuleKind::Renaming(_) => None,
        }
    }

    /// What the rule sees of `key`, if it applies to it at all.
    pub(crate) fn inner<'k>(&self, key: &'k str) -> Option<&'k str> {
        key.strip_prefix(self.prefix.as_str())
    }

    pub(crate) fn outer(&self, inner: &str) -> String {
        format!("{}{inner}", self.prefix)
    }

    /// Where one of the converter's sources, or one of its targets, is in `key`: which one, and the group of keys that
    /// belong together with the index in a module list.
    pub(crate) fn member<'k>(&self, key: &'k str, side: Side) -> Option<(usize, Member<'k>)> {
        let converter = self.converter()?;
        let inner = self.inner(key)?;
        let (patterns, listed) = match side {
            Side::Sources => (&converter.sources, converter.merges),
            Side::Targets => (&converter.targets, converter.splits),
        };
        let found = patterns.iter().enumerate().filter_map(|(number, pattern)| Some((number, pattern.find(inner)?)));
        // The most particular one: `mlp.proj` rather than `proj`.
        let length = |number: usize| patterns.get(number).map_or(0, Pattern::len);
        let (number, mut found) =
            found.reduce(|best, other| if length(other.0) > length(best.0) { other } else { best })?;
        let index = if listed { found.stars.pop() } else { None };
        Some((number, Member { before: found.before, carried: found.stars, after: found.after, index }))
    }
}

/// The two sides of a converter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Sources,
    Targets,
}

/// A key as one of those that a converter takes, or makes, together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Member<'k> {
    pub(crate) before: &'k str,
    pub(crate) carried: Vec<&'k str>,
    pub(crate) after: &'k str,
    /// What stands for the index in a module list, if there is one.
    pub(crate) index: Option<&'k str>,
}

/// What the keys of a group have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GroupName {
    /// The rule's number.
    pub(crate) rule: usize,
    before: String,
    carried: Vec<String>,
    after: String,
}

impl GroupName {
    pub(crate) fn new(rule: usize, member: &Member<'_>) -> Self {
        Self {
            rule,
            before: member.before.to_owned(),
            carried: member.carried.iter().map(|&star| star.to_owned()).collect(),
            after: member.after.to_owned(),
        }
    }

    /// The key of the pattern number `number` of a side, at `index` of a module list.
    pub(crate) fn key(&self, bound: &Bound<'_>, side: Side, number: usize, index: usize) -> String {
        let Some(converter) = bound.converter() else {
            return String::new();
        };
        let patterns = match side {
            Side::Sources => &converter.sources,
            Side::Targets => &converter.targets,
        };
        let index = index.to_string();
        let stars = self.carried.iter().take(converter.carried).map(String::as_str).chain([index.as_str()]);
        let run = patterns.get(number).map(|pattern| pattern.fill(stars)).unwrap_or_default();
        format!("{}{}{run}{}", bound.prefix, self.before, self.after)
    }
}

/// A segment as an index in a module list: digits, without zeros before them.
pub(crate) fn index(segment: &str) -> Option<usize> {
    let number = segment.parse().ok()?;
    let canonical = segment == "0" || !segment.starts_with(['0', '+']);
    canonical.then_some(number)
}

/// The size of a head that a config states for the model at `path`.
///
/// A model inside another has a part of the config for itself (`vision_config` for `vision_model`); the base model at
/// `base` of a head has not.
fn head_dim(config: &Value, path: &str, base: &str) -> Result<usize, String> {
    let inside = match path.strip_prefix(base) {
        Some("") => "",
        Some(rest) => rest.strip_prefix('.').unwrap_or(path),
        None => path,
    };
    let config = match inside.rsplit('.').next() {
        None | Some("") => config,
        Some(name) => {
            let part = format!("{}_config", name.strip_suffix("_model").unwrap_or(name));
            let absent =
                || format!("the config has no `{part}` for `{path}`; state it with `PermuteForRope::head_dim`");
            config.get(&part).ok_or_else(absent)?
        }
    };
    let number = |value: &Value| value.as_u64().and_then(|number| usize::try_from(number).ok());
    for config in [Some(config), config.get("text_config")].into_iter().flatten() {
        let field = |name: &str| config.get(name).and_then(number);
        if let Some(head_dim) = field("head_dim") {
            return Ok(head_dim);
        }
        if let (Some(hidden), Some(heads)) = (field("hidden_size"), field("num_attention_heads"))
            && let Some(head_dim) = hidden.checked_div(heads)
        {
            return Ok(head_dim);
        }
    }
    Err("the config has neither `head_dim` nor `hidden_size` and `num_attention_heads`; state it with \
         `PermuteForRope::head_dim`"
        .to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn indices_are_plain_numbers() {
        assert_eq!(index("0"), Some(0));
        assert_eq!(index("10"), Some(10));
        for wrong in ["", "00", "01", "+1", "-1", "1a", "shared", "99999999999999999999999"] {
            assert_eq!(index(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_head_is_as_large_as_the_config_says() {
        let head_dim = |config: &Value| super::head_dim(config, "", "model");
        assert_eq!(head_dim(&json!({ "head_dim": 16, "hidden_size": 64, "num_attention_heads": 8 })), Ok(16));
        assert_eq!(head_dim(&json!({ "head_dim": null, "hidden_size": 64, "num_attention_heads": 8 })), Ok(8));
        assert_eq!(head_dim(&json!({ "text_config": { "hidden_size": 6, "num_attention_heads": 3 } })), Ok(2));
        assert!(head_dim(&json!({ "hidden_size": 6, "num_attention_heads": 0 })).is_err());

        let both = json!({ "text_config": { "head_dim": 4 }, "vision_config": { "head_dim": 8 }, "head_dim": 2 });
        for (path, expected) in [
            ("", Some(2)),
            ("model", Some(2)),
            ("vision_model", Some(8)),
            ("model.vision_model", Some(8)),
            ("text", Some(4)),
            ("models.text_model", Some(4)),
            ("audio_model", None),
        ] {
            assert_eq!(super::head_dim(&both, path, "model").ok(), expected, "{path}");
        }
    }
}
