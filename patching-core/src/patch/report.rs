use super::set::PatchSet;

use crate::class::{SlotInfo, all_slots, known_classes};
use crate::names::{near, short_name};
use burn::module::Module;
use std::fmt;

/// What patches replaced in a model.
///
/// `Display` prints it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PatchReport {
    /// The slots that hold a replacement, in the order of the model's fields.
    pub replaced: Vec<ReplacedSlot>,
    /// The keys that replaced nothing.
    pub unmatched: Vec<UnmatchedKey>,
}

/// A slot that holds a replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplacedSlot {
    /// Where the slot is, from the model (`model.layers.0.self_attn`).
    pub path: String,
    /// The slot's class.
    pub from: &'static str,
    /// The replacement.
    pub to: &'static str,
    /// The key that matched.
    pub key: String,
}

/// A key that replaced nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnmatchedKey {
    /// The key.
    pub key: String,
    /// Its replacement.
    pub replacement: &'static str,
    /// Classes of the model, else of the program, that look like it.
    pub near: Vec<&'static str>,
}

impl PatchReport {
    pub(super) fn new<M: Module>(set: &PatchSet, model: &M) -> Self {
        let slots = all_slots(model);
        let replaced: Vec<_> = slots.iter().filter_map(|slot| replaced(set, slot)).collect();
        let kept = |key: &str| {
            slots.iter().any(|slot| {
                set.find(slot.class).is_some_and(|(found, replacement)| found == key && replacement.is_original())
            })
        };
        let unmatched = set
            .iter()
            .filter(|(key, _)| !kept(key) && !replaced.iter().any(|slot| slot.key == *key))
            .map(|(key, replacement)| UnmatchedKey {
                key: key.to_owned(),
                replacement: replacement.name(),
                near: near_classes(key, &slots),
            })
            .collect();
        Self { replaced, unmatched }
    }

    /// Whether there were no patches.
    pub fn is_empty(&self) -> bool {
        self.replaced.is_empty() && self.unmatched.is_empty()
    }
}

fn replaced(set: &PatchSet, slot: &SlotInfo) -> Option<ReplacedSlot> {
    let (key, replacement) = set.find(slot.class)?;
    (replacement.implementation() == Some(slot.implementation_id)).then(|| ReplacedSlot {
        path: slot.path.clone(),
        from: slot.class,
        to: short_name(slot.implementation),
        key: key.to_owned(),
    })
}

fn near_classes(key: &str, slots: &[SlotInfo]) -> Vec<&'static str> {
    let mut in_model: Vec<_> = slots.iter().map(|slot| slot.class).collect();
    in_model.sort_unstable();
    in_model.dedup();
    let near_in_model = near(key, in_model);
    if near_in_model.is_empty() { near(key, known_classes().map(|class| class.name)) } else { near_in_model }
}

impl fmt::Display for PatchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        let mut keys: Vec<&str> = Vec::new();
        for slot in &self.replaced {
            if !keys.contains(&slot.key.as_str()) {
                keys.push(&slot.key);
            }
        }
        for key in keys {
            let slots: Vec<_> = self.replaced.iter().filter(|slot| slot.key == key).collect();
            lines.push(format!("`{key}` replaced {} of the model's slots", slots.len()));
            lines.extend(slots.iter().map(|slot| format!("  {}  {} -> {}", slot.path, slot.from, slot.to)));
        }
        for UnmatchedKey { key, replacement, near } in &self.unmatched {
            let near: Vec<_> = near.iter().map(|name| format!("`{name}`")).collect();
            let near = if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) };
            lines.push(format!("`{key}` (for `{replacement}`) matches nothing in the model{near}"));
        }
        if lines.is_empty() {
            lines.push("no patches".to_owned());
        }
        f.write_str(&lines.join("\n"))
    }
}
