use super::set::PatchSet;
use crate::class::{SlotInfo, all_slots, known_classes};
use crate::names::{did_you_mean, list, near, short_name};
use burn::module::Module;
use std::any::TypeId;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

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

/// A key that replaced nothing. `Display` says why.
#[derive(Clone)]
#[non_exhaustive]
pub struct UnmatchedKey {
    /// The key.
    pub key: String,
    /// Its replacement.
    pub replacement: &'static str,
    /// What the reason is found in, if somebody asks: for a hundred keys it takes longer than to load a small model.
    context: Arc<Context>,
}

/// The patches, and the classes of the model.
struct Context {
    set: PatchSet,
    /// Names and ids, each once.
    classes: Vec<(&'static str, TypeId)>,
}

/// Why a key replaced nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnmatchedReason {
    /// No class in the model has the name, or one that the expression matches.
    NoClass {
        /// Classes of the model, else of the program, that look like it.
        near: Vec<&'static str>,
        /// For a plain name that is a part of names in the model: an expression, and a class that it would match.
        as_expression: Option<(String, &'static str)>,
    },
    /// It matches classes of the model, but another key came before it.
    Beaten {
        /// The classes.
        classes: Vec<&'static str>,
        /// The other key.
        by: String,
        /// Whether that is a class's exact name, which beats expressions; else it was registered first.
        by_name: bool,
    },
    /// It is the name of a class of the model, but not that of a class which the replacement stands in for: another
    /// crate has one of the same name.
    OtherClass {
        /// The class.
        class: &'static str,
    },
    /// It matches classes of the model, which was constructed without these patches.
    NotApplied {
        /// The classes.
        classes: Vec<&'static str>,
    },
}

impl PatchReport {
    pub(super) fn new<M: Module>(set: &PatchSet, model: &M) -> Self {
        // by far the most common case, and the walk would be for nothing
        if set.is_empty() {
            return Self::default();
        }
        let slots = all_slots(model);
        let replaced: Vec<_> = slots.iter().filter_map(|slot| replaced(set, slot)).collect();
        let exempted: HashSet<&str> = slots
            .iter()
            .filter_map(|slot| set.find(slot.class).filter(|(_, replacement)| replacement.is_original()))
            .map(|(key, _)| key)
            .collect();
        let kept = |key: &str| exempted.contains(key);
        let mut classes: Vec<_> = slots.iter().map(|slot| (slot.class, slot.class_id)).collect();
        classes.sort_unstable();
        classes.dedup();
        let context = Arc::new(Context { set: set.clone(), classes });
        let taken: HashSet<&str> = replaced.iter().map(|slot| slot.key.as_str()).collect();
        let unmatched = set
            .iter()
            .filter(|(key, _)| !taken.contains(key) && !kept(key))
            .map(|(key, replacement)| UnmatchedKey {
                key: key.to_owned(),
                replacement: replacement.name(),
                context: Arc::clone(&context),
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

impl UnmatchedKey {
    /// Why it replaced nothing.
    pub fn reason(&self) -> UnmatchedReason {
        let (key, Context { set, classes: in_model }) = (self.key.as_str(), &*self.context);
        let mut names: Vec<_> = in_model.iter().map(|(name, _)| *name).collect();
        names.dedup();
        let classes: Vec<_> = names.iter().copied().filter(|class| set.matches(key, class)).collect();
        let taken = |class: &&'static str| set.find(class).map(|(by, _)| by).filter(|by| *by != key);
        if let Some(by) = classes.iter().find_map(taken) {
            return UnmatchedReason::Beaten { classes, by: by.to_owned(), by_name: set.is_exact(by) };
        }
        if let Some(class) = classes.first() {
            let fits = |id| set.get(key).is_some_and(|replacement| replacement.fits(id));
            let is_meant = in_model.iter().any(|(name, id)| classes.contains(name) && fits(*id));
            return if is_meant {
                UnmatchedReason::NotApplied { classes }
            } else {
                UnmatchedReason::OtherClass { class }
            };
        }
        let part = names.iter().copied().find(|class| set.is_exact(key) && class.ends_with(key));
        let as_expression = part.map(|class| (format!("{key}$"), class));
        let of_model = near(key, names);
        let near = if of_model.is_empty() && as_expression.is_none() {
            near(key, known_classes().map(|class| class.name))
        } else {
            of_model
        };
        UnmatchedReason::NoClass { near, as_expression }
    }
}

impl PartialEq for UnmatchedKey {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.replacement == other.replacement && self.reason() == other.reason()
    }
}

impl Eq for UnmatchedKey {}

impl fmt::Debug for UnmatchedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnmatchedKey")
            .field("key", &self.key)
            .field("replacement", &self.replacement)
            .field("reason", &self.reason())
            .finish()
    }
}

impl fmt::Display for UnmatchedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` (for `{}`) ", self.key, self.replacement)?;
        match &self.reason() {
            UnmatchedReason::NoClass { as_expression: Some((expression, class)), .. } => write!(
                f,
                "is a name that no class in the model has; as an expression, `{expression}` would match `{class}`"
            ),
            UnmatchedReason::NoClass { near, .. } => write!(f, "matches nothing in the model{}", did_you_mean(near)),
            UnmatchedReason::Beaten { classes, by, by_name } => {
                let why = if *by_name { "a name beats expressions" } else { "it was registered first" };
                write!(f, "matches {}, but `{by}` came before it: {why}", list(classes))
            }
            UnmatchedReason::OtherClass { class } => {
                write!(f, "stands in for another crate's `{class}` than that of the model, so it was left alone")
            }
            UnmatchedReason::NotApplied { classes } => write!(
                f,
                "matches {}, but the model was constructed without these patches (`from_pretrained`, `from_config` and \
                 `apply_patches` apply those that are registered)",
                list(classes)
            ),
        }
    }
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
        lines.extend(self.unmatched.iter().map(ToString::to_string));
        if lines.is_empty() {
            lines.push("no patches".to_owned());
        }
        f.write_str(&lines.join("\n"))
    }
}
