//! Patterns: runs of whole segments of a key.

use super::error::RuleError;

/// A run of whole segments, found anywhere in a key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Pattern {
    text: String,
    segments: Vec<Segment>,
    stars: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Segment {
    Literal(String),
    /// `*`: any one segment.
    Star,
}

/// Where a pattern was found in a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found<'k> {
    /// What comes before the run, its dot included.
    pub(crate) before: &'k str,
    /// The segments that the stars stand for.
    pub(crate) stars: Vec<&'k str>,
    /// What comes after the run, its dot included.
    pub(crate) after: &'k str,
}

impl Pattern {
    /// Dots at the ends do not matter.
    pub(crate) fn parse(text: &str) -> Result<Self, RuleError> {
        let trimmed = text.trim_matches('.');
        if trimmed.is_empty() {
            return Err(RuleError::EmptyPattern { pattern: text.to_owned() });
        }
        let segments: Vec<_> = trimmed
            .split('.')
            .map(|segment| match segment {
                "" => Err(RuleError::EmptySegment { pattern: text.to_owned() }),
                "*" => Ok(Segment::Star),
                partial if partial.contains('*') => {
                    Err(RuleError::PartialStar { pattern: text.to_owned(), segment: partial.to_owned() })
                }
                literal => Ok(Segment::Literal(literal.to_owned())),
            })
            .collect::<Result<_, _>>()?;
        let stars = segments.iter().filter(|segment| **segment == Segment::Star).count();
        Ok(Self { text: trimmed.to_owned(), segments, stars })
    }

    /// As it was written, without dots at the ends.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// How many segments it stands for.
    pub(crate) fn len(&self) -> usize {
        self.segments.len()
    }

    /// How many stars it has.
    pub(crate) fn stars(&self) -> usize {
        self.stars
    }

    /// The first place in `key` where the run is.
    pub(crate) fn find<'k>(&self, key: &'k str) -> Option<Found<'k>> {
        let mut start = 0;
        loop {
            if let Some(found) = self.at(key, start) {
                return Some(found);
            }
            start += key.get(start..)?.find('.')? + 1;
        }
    }

    /// Whether the run is at the segment that begins at `start`.
    fn at<'k>(&self, key: &'k str, start: usize) -> Option<Found<'k>> {
        let mut stars = Vec::new();
        let mut rest = key.get(start..)?;
        for (number, segment) in self.segments.iter().enumerate() {
            if number > 0 {
                rest = rest.strip_prefix('.')?;
            }
            let end = rest.find('.').unwrap_or(rest.len());
            let (found, after) = rest.split_at(end);
            match segment {
                Segment::Literal(literal) if literal == found => {}
                Segment::Star if !found.is_empty() => stars.push(found),
                _ => return None,
            }
            rest = after;
        }
        Some(Found { before: key.get(..start)?, stars, after: rest })
    }

    /// The run with `stars` in place of its stars.
    pub(crate) fn fill<'s>(&self, stars: impl IntoIterator<Item = &'s str>) -> String {
        let mut stars = stars.into_iter();
        let mut filled = String::new();
        for (number, segment) in self.segments.iter().enumerate() {
            if number > 0 {
                filled.push('.');
            }
            filled.push_str(match segment {
                Segment::Literal(literal) => literal,
                Segment::Star => stars.next().unwrap_or("*"),
            });
        }
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(pattern: &str, key: &'static str) -> Option<(&'static str, Vec<&'static str>, &'static str)> {
        let found = Pattern::parse(pattern).expect("a pattern").find(key)?;
        Some((found.before, found.stars, found.after))
    }

    #[test]
    fn a_run_is_whole_segments_anywhere() {
        assert_eq!(find("q_proj", "layers.0.q_proj.weight"), Some(("layers.0.", vec![], ".weight")));
        assert_eq!(find("q_proj", "q_proj"), Some(("", vec![], "")));
        assert_eq!(find(".norm.weight.", "norm.norm.weight"), Some(("norm.", vec![], "")));
        assert_eq!(find("layers", "mylayers.0"), None);
        assert_eq!(find("proj.weight", "proj.weight_scale"), None);
        assert_eq!(find("a.b", "a"), None);
        assert_eq!(find("a", ""), None);
    }

    #[test]
    fn stars_are_one_segment_each() {
        let key = "layers.3.mlp.experts.12.gate.weight";
        assert_eq!(find("experts.*.gate", key), Some(("layers.3.mlp.", vec!["12"], ".weight")));
        assert_eq!(find("layers.*.*.experts.*", key), Some(("", vec!["3", "mlp", "12"], ".gate.weight")));
        assert_eq!(find("experts.*.weight", key), None);
        assert_eq!(find("a.*", "a."), None);
        let pattern = Pattern::parse("x.*.y.*").expect("a pattern");
        assert_eq!(pattern.fill(["1", "2"]), "x.1.y.2");
        assert_eq!(pattern.fill(["1"]), "x.1.y.*");
    }

    #[test]
    fn names_with_characters_of_expressions_are_plain() {
        for key in ["a(b)", "x[y", "a+b", "c$", "^d", "e\\1", "f|g", "ü", "*"] {
            assert!(Pattern::parse("q").expect("a pattern").find(key).is_none());
            if key != "*" {
                assert!(Pattern::parse(key).expect("a pattern").find(&format!("m.{key}.weight")).is_some());
            }
        }
        for wrong in ["", ".", "..", "a..b", "a*c", "a.b*"] {
            assert!(Pattern::parse(wrong).is_err(), "{wrong}");
        }
    }
}
