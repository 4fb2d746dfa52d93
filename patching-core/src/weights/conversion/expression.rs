//! Renaming by a regular expression, and its inverse.

use regex::Regex;
use regex_syntax::hir::{Hir, HirKind, Look};

use super::error::RuleError;

/// A regular expression and what replaces the first place where it is found.
#[derive(Debug, Clone)]
pub(crate) struct Expression {
    regex: Regex,
    replacement: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Group(usize),
}

impl Expression {
    pub(crate) fn parse(expression: &str, replacement: &str) -> Result<Self, RuleError> {
        if expression.is_empty() {
            return Err(RuleError::EmptyPattern { pattern: expression.to_owned() });
        }
        let regex = Regex::new(expression).map_err(|error| RuleError::Expression {
            expression: expression.to_owned(),
            // The message repeats the expression and points into it, which takes several lines.
            reason: error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned(),
        })?;
        let replacement = parts(replacement, &regex)?;
        Ok(Self { regex, replacement })
    }

    /// An expression for what it may have made, for where there is no inverse: it finds all of that, and more. `None`
    /// where that may be anything.
    pub(crate) fn image(&self) -> Option<Regex> {
        let hir = regex_syntax::parse(self.regex.as_str()).ok()?;
        let mut groups = Vec::new();
        collect_groups(&hir, &mut groups);
        let anchor = if hir.properties().look_set_prefix().contains(Look::Start) { "^" } else { "" };
        let made = self.replacement.iter().map(|part| match part {
            Part::Literal(literal) => regex::escape(literal),
            Part::Group(number) => match groups.iter().find(|(index, _)| index == number) {
                // what is around a group may differ, and it need not have taken part
                Some((_, group)) if group.properties().look_set().is_empty() => format!("(?:{group})?"),
                _ => ".*".to_owned(),
            },
        });
        Regex::new(&format!("{anchor}{}", made.collect::<String>())).ok()
    }

    pub(crate) fn is_match(&self, key: &str) -> bool {
        self.regex.is_match(key)
    }

    /// `key` with the first place that matches replaced; `None` where none does.
    pub(crate) fn apply(&self, key: &str) -> Option<String> {
        let captures = self.regex.captures(key)?;
        let whole = captures.get(0)?;
        let mut renamed = String::with_capacity(key.len());
        renamed.push_str(key.get(..whole.start())?);
        for part in &self.replacement {
            match part {
                Part::Literal(literal) => renamed.push_str(literal),
                Part::Group(number) => {
                    renamed.push_str(captures.get(*number).map_or("", |group| group.as_str()));
                }
            }
        }
        renamed.push_str(key.get(whole.end()..)?);
        Some(renamed)
    }

    /// What undoes it, where that follows from the expression alone; otherwise why it does not.
    ///
    /// It does for literals, anchors at the ends, and groups of which each is in the replacement exactly once.
    pub(crate) fn inverse(&self) -> Result<Self, String> {
        let hir = regex_syntax::parse(self.regex.as_str()).map_err(|error| error.to_string())?;
        let parts = match hir.into_kind() {
            HirKind::Concat(parts) => parts,
            other => vec![rebuilt(other)],
        };
        let (mut start, mut end) = (false, false);
        let mut groups = Vec::<(usize, Hir)>::new();
        let mut original = Vec::new();
        for part in parts {
            match part.into_kind() {
                HirKind::Literal(literal) => {
                    let text = String::from_utf8(literal.0.to_vec()).map_err(|_| "it matches bytes".to_owned())?;
                    original.push(Part::Literal(text));
                }
                HirKind::Look(Look::Start) if original.is_empty() => start = true,
                HirKind::Look(Look::End) => end = true,
                HirKind::Capture(capture) => {
                    if has_capture(&capture.sub) {
                        return Err("it has a group inside a group".to_owned());
                    }
                    original.push(Part::Group(capture.index as usize));
                    groups.push((capture.index as usize, *capture.sub));
                }
                HirKind::Empty => {}
                other => return Err(format!("`{}` outside a group is not kept in the result", rebuilt(other))),
            }
        }

        let mut expression = String::from(if start { "^" } else { "" });
        let mut order = Vec::new();
        for part in &self.replacement {
            match part {
                Part::Literal(literal) => expression.push_str(&regex::escape(literal)),
                Part::Group(number) => {
                    let (_, group) = groups
                        .iter()
                        .find(|(index, _)| index == number)
                        .filter(|_| !order.contains(number))
                        .ok_or_else(|| format!("group {number} is not exactly once in the replacement"))?;
                    order.push(*number);
                    expression.push_str(&format!("({group})"));
                }
            }
        }
        if let Some((lost, _)) = groups.iter().find(|(index, _)| !order.contains(index)) {
            return Err(format!("group {lost} is not in the replacement"));
        }
        if end {
            expression.push('$');
        }
        let regex = Regex::new(&expression).map_err(|error| error.to_string())?;
        if !start && !end && regex.is_match("") {
            return Err("nothing tells where in a key the replacement was".to_owned());
        }
        let replacement = original
            .into_iter()
            .map(|part| match part {
                Part::Group(number) => {
                    Part::Group(order.iter().position(|&other| other == number).map_or(0, |at| at + 1))
                }
                literal => literal,
            })
            .collect();
        Ok(Self { regex, replacement })
    }
}

/// A kind as an expression again; only leaves come here, which keep their meaning.
fn rebuilt(kind: HirKind) -> Hir {
    match kind {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(class) => Hir::class(class),
        HirKind::Look(look) => Hir::look(look),
        HirKind::Repetition(repetition) => Hir::repetition(repetition),
        HirKind::Capture(capture) => Hir::capture(capture),
        HirKind::Concat(parts) => Hir::concat(parts),
        HirKind::Alternation(parts) => Hir::alternation(parts),
    }
}

fn collect_groups<'h>(hir: &'h Hir, groups: &mut Vec<(usize, &'h Hir)>) {
    if let HirKind::Capture(capture) = hir.kind() {
        groups.push((capture.index as usize, &capture.sub));
    }
    for inner in hir.kind().subs() {
        collect_groups(inner, groups);
    }
}

fn has_capture(hir: &Hir) -> bool {
    hir.properties().explicit_captures_len() > 0
}

/// Splits a replacement into literals and groups.
fn parts(replacement: &str, regex: &Regex) -> Result<Vec<Part>, RuleError> {
    let lone = || RuleError::LoneDollar { replacement: replacement.to_owned() };
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut rest = replacement;
    while let Some((before, after)) = rest.split_once('$') {
        literal.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            literal.push('$');
            rest = after;
            continue;
        }
        let (name, after) = match after.strip_prefix('{') {
            Some(braced) => braced.split_once('}').ok_or_else(lone)?,
            None => {
                let end = after.find(|next: char| !next.is_ascii_alphanumeric() && next != '_');
                after.split_at(end.unwrap_or(after.len()))
            }
        };
        if name.is_empty() {
            return Err(lone());
        }
        let by_number = name.parse().ok().filter(|&number: &usize| number < regex.captures_len());
        let by_name = || regex.capture_names().position(|other| other == Some(name));
        let Some(group) = by_number.or_else(by_name) else {
            return Err(RuleError::UnknownGroup {
                replacement: replacement.to_owned(),
                group: name.to_owned(),
                expression: regex.as_str().to_owned(),
                known: known_groups(regex),
            });
        };
        if !literal.is_empty() {
            parts.push(Part::Literal(std::mem::take(&mut literal)));
        }
        parts.push(Part::Group(group));
        rest = after;
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        parts.push(Part::Literal(literal));
    }
    Ok(parts)
}

fn known_groups(regex: &Regex) -> String {
    let names: Vec<_> = regex
        .capture_names()
        .enumerate()
        .skip(1)
        .map(|(number, name)| name.map_or_else(|| format!("`{number}`"), |name| format!("`{name}`")))
        .collect();
    if names.is_empty() { "no groups".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expression(expression: &str, replacement: &str) -> Expression {
        Expression::parse(expression, replacement).expect("it parses")
    }

    #[test]
    fn every_group_is_at_hand_and_the_span_is_replaced() {
        let rename = expression(r"(\w+)\.(\d+)\.(?<last>\w+)$", "${last}_$2.$1");
        assert_eq!(rename.apply("a.layer.12.w").as_deref(), Some("a.w_12.layer"));
        // the protected one is left alone
        assert_eq!(expression(r"_bn", "_norm").apply("bn.x_bn.bn").as_deref(), Some("bn.x_norm.bn"));
        assert_eq!(expression("a", "$$1").apply("bab").as_deref(), Some("b$1b"));
        assert_eq!(expression("x", "y").apply("bab"), None);
    }

    #[test]
    fn what_loses_nothing_is_inverted() {
        for (pattern, replacement, keys) in [
            (
                r"^encoder\.layer\.(\d+)\.",
                "layers.$1.",
                &["encoder.layer.3.w", "encoder.layer.11.encoder.layer.1."][..],
            ),
            (r"^model\.", "", &["model.a", "model.model.b"]),
            (r"\.gamma$", ".weight", &["a.gamma", "gamma.gamma"]),
            (r"(?<block>h\d+)\.(attn|mlp)", "$2-$block", &["x.h12.attn.w", "h3.mlp"]),
        ] {
            let forward = expression(pattern, replacement);
            let inverse = forward.inverse().expect(pattern);
            for key in keys {
                let there = forward.apply(key).expect("it matches");
                assert_eq!(inverse.apply(&there).as_deref(), Some(*key), "{pattern}: {there}");
            }
        }
    }

    #[test]
    fn what_loses_something_is_not_inverted() {
        for (pattern, replacement) in [
            ("a.b", "c"),
            ("(a|b)", "c"),
            ("(a)(b)", "$1$1$2"),
            ("a|b", "c"),
            ("a*", "c"),
            ("foo", ""),
            ("((a)b)", "$1$2"),
            (r"\bfoo", "bar"),
        ] {
            assert!(expression(pattern, replacement).inverse().is_err(), "{pattern}");
        }
    }

    #[test]
    fn what_was_made_is_told_from_the_rest() {
        for (pattern, replacement, made, others) in [
            (r"^encoder.layers?\.(\d+)", "layers.$1", &["layers.0.w"][..], &["decoder.layers.0", "norm"][..]),
            ("(a|b)x?", "${1}c", &["ac", "k.bc", "c"], &["x", "a"]),
            (r"(q)(\b\w+)?x*", "$1$2.w", &["q.w", "qk.w"], &["k.b", "q.b"]),
            ("((a)b)?c*", "$2!", &["!", "a!"], &["a"]),
        ] {
            let image = expression(pattern, replacement).image().expect("an expression");
            for key in made {
                assert!(image.is_match(key), "{pattern}: {key}");
            }
            for key in others {
                assert!(!image.is_match(key), "{pattern}: {key}");
            }
        }
    }

    #[test]
    fn mistakes_are_named() {
        let error =
            |expression, replacement| Expression::parse(expression, replacement).expect_err("wrong").to_string();
        assert_eq!(
            error(r"(a)(?<b>c)", "$2x"),
            "the replacement `$2x` names the group `2x`, but `(a)(?<b>c)` has `1`, `b`"
        );
        assert_eq!(error("a", "$1"), "the replacement `$1` names the group `1`, but `a` has no groups");
        assert!(error("a", "b$").starts_with("`$` in the replacement `b$` names no group"));
        assert!(
            error("a(", "b").starts_with("`a(` is not a regular expression: unclosed group"),
            "{}",
            error("a(", "b")
        );
        assert!(error("", "b").contains("is empty"));
    }
}
