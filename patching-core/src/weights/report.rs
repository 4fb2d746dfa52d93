//! What a load did, and what it could not do.

use std::collections::BTreeMap;
use std::fmt;

use burn::tensor::DType;

use super::applicable::UnusedConversion;
use super::conversion::{ConversionProblem, with_shapes};
use crate::patch::PatchReport;

/// What a load did. Its `Display` is meant to be read by people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadReport {
    /// Parameters that got a value from the checkpoint.
    pub loaded: usize,
    /// Bytes of the checkpoint that they take.
    pub bytes: u64,
    /// Parameters without a value in the checkpoint. They have the value that they had before.
    pub missing: Vec<MissingKey>,
    /// Tensors of the checkpoint that the model has no place for.
    pub unexpected: Vec<String>,
    /// Parameters whose tensor in the checkpoint does not fit. They have the value that they had before.
    pub mismatched: Vec<MismatchedKey>,
    /// Parameters that were found under another key.
    pub renamed: Vec<RenamedKey>,
    /// Parameters that share another's value, since the model ties them and the checkpoint has it once, or twice alike.
    pub tied: Vec<TiedKey>,
    /// Parameters that the model ties, but that have values of their own in the checkpoint. They were not tied.
    pub untied: Vec<TiedKey>,
    /// Parameters whose elements were converted.
    pub casts: Vec<CastKey>,
    /// What was put in the place of the model's classes, where `from_pretrained` constructed it.
    pub patches: PatchReport,
    /// Parameters that rules made of other tensors.
    pub converted: Vec<ConvertedKey>,
    /// Rules that were registered or given for this load, but did nothing, since the checkpoint has what they would
    /// make, or the model has no place for that.
    pub unused_rules: Vec<String>,
    /// Conversions that are registered for a name that looks like one of the model's, or for a module class in it. They
    /// apply to no part of it.
    pub unused_conversions: Vec<UnusedConversion>,
    /// Why rules could not do what they should. Always an error.
    pub problems: Vec<ConversionProblem>,
}

/// Tensors that were made of others.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConvertedKey {
    /// The keys of those that they were made of: in the file when loading, in the model when saving.
    pub sources: Vec<String>,
    /// The keys of those that were made.
    pub targets: Vec<String>,
    /// What was done, in order.
    pub operations: Vec<String>,
}

/// A parameter without a value in the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingKey {
    /// Its key.
    pub key: String,
    /// The shape that the tensor would have, as in a file.
    pub shape: Vec<usize>,
    /// Unexpected keys that look alike.
    pub near: Vec<String>,
    /// Parameters that rules made of the tensor that has this key.
    pub taken_for: Vec<String>,
}

/// A parameter whose tensor in the checkpoint does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MismatchedKey {
    /// Its key.
    pub key: String,
    /// The tensor's shape in the file.
    pub file_shape: Vec<usize>,
    /// The shape that it should have, as in a file.
    pub model_shape: Vec<usize>,
    /// The tensor's element type, where that is what does not fit.
    pub dtype: Option<String>,
    /// The tensors that it was to be made of, with their shapes, where it is not simply one in the file.
    pub sources: Vec<(String, Vec<usize>)>,
}

/// A parameter that was found under another key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RenamedKey {
    /// The key in the file.
    pub from: String,
    /// The parameter's key in the model.
    pub to: String,
}

/// A parameter and the one it is tied to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TiedKey {
    /// The parameter.
    pub key: String,
    /// The one whose value it shares, or would share.
    pub source: String,
}

/// A parameter whose elements were converted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CastKey {
    /// The parameter's key.
    pub key: String,
    /// The element type in the file.
    pub from: DType,
    /// The element type in the model.
    pub to: DType,
    /// Why.
    pub reason: CastReason,
}

/// Why elements were converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum CastReason {
    /// The options ask for it.
    Requested,
    /// The device does not compute in the type.
    Unsupported,
    /// Integers and truth values have one type on a device.
    DeviceDefault,
}

impl fmt::Display for CastReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Requested => "as asked for",
            Self::Unsupported => "the device does not compute in it",
            Self::DeviceDefault => "the device's own type",
        })
    }
}

impl LoadReport {
    /// Whether every parameter has the value that the checkpoint gives it, and every tensor was used.
    pub fn is_exact(&self) -> bool {
        self.missing.is_empty()
            && self.unexpected.is_empty()
            && self.mismatched.is_empty()
            && self.untied.is_empty()
            && self.problems.is_empty()
    }
}

impl fmt::Display for LoadReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "loaded {} parameters ({} bytes)", self.loaded, self.bytes)?;

        if !self.problems.is_empty() {
            write!(formatter, "\ncannot be converted ({}):", self.problems.len())?;
            for problem in &self.problems {
                write!(formatter, "\n  {problem}")?;
            }
        }

        let missing = self.missing.iter().map(|MissingKey { key, shape, near: _, taken_for }| {
            let taken = match taken_for.as_slice() {
                [] => String::new(),
                taken => format!(", though the checkpoint has it, since a rule made {} of it", quoted(taken)),
            };
            (key.as_str(), format!("{shape:?}{taken}"))
        });
        section(formatter, "missing", missing)?;
        for (key, near) in alike(&self.missing) {
            write!(formatter, "\n  for `{key}` the checkpoint has {near}")?;
        }

        let mismatched = self.mismatched.iter().map(|mismatched| {
            let MismatchedKey { key, file_shape, model_shape, dtype, sources } = mismatched;
            let of = dtype.as_ref().map_or(String::new(), |dtype| format!(" of {dtype}, which does not fit"));
            let from = match sources.as_slice() {
                [] => "in the checkpoint".to_owned(),
                sources => format!("made of {}", with_shapes(sources)),
            };
            (key.as_str(), format!("{file_shape:?}{of} {from}, {model_shape:?} in the model"))
        });
        section(formatter, "mismatched", mismatched)?;

        section(formatter, "unexpected", self.unexpected.iter().map(|key| (key.as_str(), String::new())))?;

        let renamed = self.renamed.iter().map(|renamed| (renamed.to.as_str(), prefix_change(renamed)));
        section(formatter, "renamed", renamed)?;

        let converted: Vec<_> = self.converted.iter().map(made_of).collect();
        section(formatter, "converted", converted.iter().map(|(key, note)| (key.as_str(), note.clone())))?;
        for rule in &self.unused_rules {
            write!(formatter, "\nthe rule {rule} was not used")?;
        }
        for unused in &self.unused_conversions {
            write!(formatter, "\n{unused}")?;
        }

        let tied = |tied: &'_ TiedKey| (tied.key.clone(), format!("`{}`", tied.source));
        for (title, keys) in [("tied", &self.tied), ("not tied, since the checkpoint has both", &self.untied)] {
            let keys: Vec<_> = keys.iter().map(tied).collect();
            section(formatter, title, keys.iter().map(|(key, source)| (key.as_str(), source.clone())))?;
        }

        let mut casts = BTreeMap::<_, usize>::new();
        for cast in &self.casts {
            *casts.entry((cast.from.name(), cast.to.name(), cast.reason)).or_default() += 1;
        }
        for ((from, to, reason), count) in casts {
            write!(formatter, "\nconverted from {from} to {to} ({reason}): {count}")?;
        }
        if !self.patches.is_empty() {
            write!(formatter, "\n{}", self.patches)?;
        }
        let unfit = !self.missing.is_empty() || !self.mismatched.is_empty();
        if unfit && !self.patches.replaced.is_empty() {
            write!(
                formatter,
                "\nif a replacement lays its weights out differently, register how they are made of those in the checkpoint \
                 (`register_checkpoint_conversion_mapping`)"
            )?;
        }
        Ok(())
    }
}

/// Missing keys and what looks like them, those of all layers in one.
fn alike(missing: &[MissingKey]) -> Vec<(String, String)> {
    let of_layers = |key: &String| match split_number(key) {
        (Some([before, after]), _) => format!("{before}*{after}"),
        (None, _) => key.clone(),
    };
    let mut lines = Vec::<(String, String)>::new();
    let mut single = Vec::<(&MissingKey, usize)>::new();
    for missing in missing.iter().filter(|missing| !missing.near.is_empty()) {
        let mut near: Vec<_> = missing.near.iter().map(of_layers).collect();
        near.dedup();
        let line = (of_layers(&missing.key), quoted(&near));
        match lines.iter().position(|known| *known == line) {
            Some(at) => single.iter_mut().filter(|(_, of)| *of == at).for_each(|(_, of)| *of = usize::MAX),
            None => {
                single.push((missing, lines.len()));
                lines.push(line);
            }
        }
    }
    // what is said of one key alone is said of it by name
    for (missing, at) in single {
        if let Some(line) = lines.get_mut(at) {
            *line = (missing.key.clone(), quoted(&missing.near));
        }
    }
    lines
}

/// A segment; a number as a star.
fn starred(segment: &str) -> &str {
    if !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit()) { "*" } else { segment }
}

/// What was made, and of what, in words that are the same for all layers.
fn made_of(ConvertedKey { sources, targets, operations }: &ConvertedKey) -> (String, String) {
    let last = |key: &String| {
        let (around, _) = split_number(key);
        around.map_or_else(|| key.clone(), |[_, after]| after.trim_start_matches('.').to_owned())
    };
    let mut parts: Vec<_> =
        sources.iter().map(|key| last(key).split('.').map(starred).collect::<Vec<_>>().join(".")).collect();
    parts.dedup();
    parts.sort();
    parts.dedup();
    let (first, rest) = targets.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    let more = if rest.is_empty() { String::new() } else { format!("and {} more, ", rest.len()) };
    let (count, steps) = (sources.len(), operations.join(", "));
    let tensors = if count == 1 { "tensor" } else { "tensors" };
    (first.to_owned(), format!("{more}from {count} {tensors} ({}) by {steps}", parts.join(", ")))
}

/// How a key was changed, in words that are the same for all keys changed alike.
fn prefix_change(RenamedKey { from, to }: &RenamedKey) -> String {
    if let Some(prefix) = to.strip_suffix(from.as_str()) {
        return format!("`{prefix}` put before it");
    }
    if let Some(prefix) = from.strip_suffix(to.as_str()) {
        return format!("`{prefix}` taken off");
    }
    let (one, other): (Vec<_>, Vec<_>) = (from.split('.').collect(), to.split('.').collect());
    let before = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
    let rest = one.len().min(other.len()) - before;
    let after = one.iter().rev().zip(other.iter().rev()).take(rest).take_while(|(one, other)| one == other).count();
    let changed = |key: &[&str]| key.get(before..key.len() - after).unwrap_or_default().join(".");
    match (changed(&one), changed(&other)) {
        (there, here) if there.is_empty() => format!("`{here}` put in"),
        (there, here) if here.is_empty() => format!("`{there}` taken out"),
        (there, here) => format!("`{here}` for `{there}`"),
    }
}

/// A title and a line for each kind of key: `layers.{0-3}.mlp.weight [8, 4]`.
fn section<'a>(
    formatter: &mut fmt::Formatter<'_>,
    title: &str,
    keys: impl Iterator<Item = (&'a str, String)>,
) -> fmt::Result {
    let mut lines = Vec::<(Option<[&str; 2]>, String, Vec<&str>)>::new();
    let mut known = BTreeMap::new();
    let mut count = 0;
    for (key, note) in keys {
        count += 1;
        let (around, number) = split_number(key);
        // Keys that differ in one number, and in nothing that is said of them, share a line.
        let line = *known.entry((around.unwrap_or([key, ""]), note.clone())).or_insert_with(|| {
            lines.push((around, note, Vec::new()));
            lines.len() - 1
        });
        if let Some((_, _, numbers)) = lines.get_mut(line) {
            numbers.push(number);
        }
    }
    if count > 0 {
        write!(formatter, "\n{title} ({count}):")?;
    }
    for (around, note, numbers) in &lines {
        let key = match (around, numbers.as_slice()) {
            (Some([before, after]), [only]) => format!("{before}{only}{after}"),
            (Some([before, after]), _) => format!("{before}{{{}}}{after}", ranges(numbers)),
            (None, _) => numbers.concat(),
        };
        let space = if note.is_empty() { "" } else { ": " };
        write!(formatter, "\n  {key}{space}{note}")?;
    }
    Ok(())
}

/// What stands around the first segment of `key` that is a number, and that number; or nothing and the whole key.
fn split_number(key: &str) -> (Option<[&str; 2]>, &str) {
    let mut start = 0;
    for segment in key.split('.') {
        let end = start + segment.len();
        if !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit()) {
            return (Some([&key[..start], &key[end..]]), segment);
        }
        start = end + 1;
    }
    (None, key)
}

/// `0, 1, 2, 5` as `0-2, 5`.
fn ranges(numbers: &[&str]) -> String {
    let mut sorted: Vec<u64> = numbers.iter().filter_map(|number| number.parse().ok()).collect();
    if sorted.len() != numbers.len() {
        return numbers.join(", ");
    }
    sorted.sort_unstable();
    let mut runs = Vec::<(u64, u64)>::new();
    for number in sorted {
        match runs.last_mut() {
            Some((_, end)) if number == *end || end.checked_add(1) == Some(number) => *end = number,
            _ => runs.push((number, number)),
        }
    }
    let runs: Vec<_> = runs
        .into_iter()
        .map(|(start, end)| if start == end { start.to_string() } else { format!("{start}-{end}") })
        .collect();
    runs.join(", ")
}

pub(crate) fn quoted(names: &[String]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_matches_of_all_layers_share_a_line() {
        let missing = |key: &str, near: &[&str]| MissingKey {
            key: key.into(),
            shape: vec![1],
            near: near.iter().map(|near| (*near).to_owned()).collect(),
            taken_for: vec![],
        };
        let found = alike(&[
            missing("layers.0.up", &["layers.0.upp"]),
            missing("layers.1.up", &["layers.1.upp"]),
            missing("layers.3.q", &["layers.3.qq"]),
            missing("head", &["heads"]),
            missing("nothing", &[]),
        ]);
        let lines: Vec<_> = found.iter().map(|(key, near)| format!("{key}: {near}")).collect();
        assert_eq!(lines, ["layers.*.up: `layers.*.upp`", "layers.3.q: `layers.3.qq`", "head: `heads`"]);
    }

    #[test]
    fn changes_of_keys_are_said_shortly() {
        let change = |from: &str, to: &str| prefix_change(&RenamedKey { from: from.into(), to: to.into() });
        assert_eq!(change("a.b", "model.a.b"), "`model.` put before it");
        assert_eq!(change("model.a.b", "a.b"), "`model.` taken off");
        assert_eq!(change("a.experts.0.w", "a.experts.list.0.w"), "`list` put in");
        assert_eq!(change("a.list.0.w", "a.0.w"), "`list` taken out");
        assert_eq!(change("a.block.gate.w", "a.mlp.gate.w"), "`mlp` for `block`");
        assert_eq!(change("a.a.a", "a.a"), "`a.` taken off");
        assert_eq!(change("x", "y"), "`y` for `x`");
    }

    #[test]
    fn keys_that_differ_in_one_number_share_a_line_only_with_equal_shapes() {
        let missing = |key: &str, shape: &[usize]| MissingKey {
            key: key.into(),
            shape: shape.into(),
            near: vec![],
            taken_for: vec![],
        };
        let report = LoadReport {
            loaded: 3,
            bytes: 12,
            missing: vec![
                missing("layers.0.a", &[2]),
                missing("layers.1.a", &[2]),
                missing("layers.2.a", &[3]),
                missing("layers.7.a", &[2]),
                missing("head", &[1]),
            ],
            ..LoadReport::default()
        };
        let expected = "loaded 3 parameters (12 bytes)\n\
            missing (5):\n  layers.{0-1, 7}.a: [2]\n  layers.2.a: [3]\n  head: [1]";
        assert_eq!(report.to_string(), expected);
    }
}
