use crate::names::list;
use std::fmt;
use thiserror::Error;

/// Why patches were not registered, or a model not constructed with them.
#[derive(Error)]
#[non_exhaustive]
pub enum PatchError {
    /// A key that names nothing.
    #[error("a patch needs the name of a class or an expression, but its key is {key:?}")]
    EmptyKey {
        /// The key.
        key: String,
    },
    /// A key that is neither a name nor an expression.
    #[error("the key `{key}` is neither the name of a class nor a valid expression: {source}")]
    InvalidExpression {
        /// The key.
        key: String,
        /// What is wrong with it.
        source: Box<regex::Error>,
    },
    /// A key that is there already. Nothing was registered.
    #[error(
        "`{key}` is already registered, for `{registered}`: unregister it first, or put `{given}` in its place with \
         `register_patch_mapping_with(…, true)`"
    )]
    Taken {
        /// The key.
        key: String,
        /// The replacement that it has.
        registered: &'static str,
        /// The one that it was to get.
        given: &'static str,
    },
    /// A key that one mapping has twice. Nothing was registered.
    #[error("the mapping has the key `{key}` twice, for `{first}` and `{second}`")]
    Twice {
        /// The key.
        key: String,
        /// Its replacement.
        first: &'static str,
        /// Its other replacement.
        second: &'static str,
    },
    /// Keys that are not registered. Nothing was unregistered.
    #[error("{}", unknown(keys))]
    Unknown {
        /// The keys, each with those registered that look like it.
        keys: Vec<(String, Vec<String>)>,
    },
    /// The name of a class that the replacement has not the interface of. Nothing was registered.
    #[error("`{replacement}` cannot stand in for `{key}`: {}", stands_in_for(replacement, stands_in))]
    NotOf {
        /// The key.
        key: String,
        /// The replacement.
        replacement: &'static str,
        /// The classes that it replaces.
        stands_in: Vec<&'static str>,
    },
    /// Patterns that match classes which their replacements cannot stand in for.
    #[error("{}", unfit.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Unfit {
        /// One for each pattern.
        unfit: Vec<Unfit>,
    },
    /// No slot of the class is where it was looked for.
    #[error("the model has no slot of class `{class}` at `{at}`; {}", there(class, present))]
    NoSlot {
        /// The class.
        class: &'static str,
        /// Where it was looked for.
        at: String,
        /// Where such slots are.
        present: Vec<String>,
    },
    /// A path that cannot be searched for.
    #[error("`{path}` is no path of a module: it has an empty segment")]
    InvalidPath {
        /// The path.
        path: String,
    },
}

crate::__debug_as_display!(PatchError);

/// A pattern that matched classes which its replacement cannot stand in for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unfit {
    /// The pattern.
    pub key: String,
    /// Its replacement.
    pub replacement: &'static str,
    /// The classes that it matched and cannot stand in for, in the order of construction.
    pub matched: Vec<&'static str>,
    /// The classes that it can stand in for.
    pub stands_in: Vec<&'static str>,
    /// A key that matches only those of them which the pattern matches; `None` if it matches none.
    pub narrower: Option<String>,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, replacement, matched, stands_in, narrower } = self;
        write!(f, "the key `{key}` matches {}, but {}", list(matched), stands_in_for(replacement, stands_in))?;
        if matched.iter().any(|class| stands_in.contains(class)) {
            return write!(
                f,
                " (another crate's class of that name); the exact name means only the one that it is for"
            );
        }
        match narrower {
            Some(narrower) => write!(f, "; a narrower key is `{narrower}`"),
            None => write!(f, "; the key matches none of those"),
        }
    }
}

fn stands_in_for(replacement: &str, classes: &[&'static str]) -> String {
    format!("`{replacement}` stands in for {} only", list(classes))
}

fn unknown(keys: &[(String, Vec<String>)]) -> String {
    let each = keys.iter().map(|(key, near)| {
        let near: Vec<&str> = near.iter().map(String::as_str).collect();
        let near = if near.is_empty() { String::new() } else { format!(" (did you mean {}?)", list(&near)) };
        format!("`{key}`{near}")
    });
    format!("not registered: {}", each.collect::<Vec<_>>().join(", "))
}

fn there(class: &str, present: &[String]) -> String {
    /// As many paths as are helpful in a message.
    const SHOWN: usize = 8;
    if present.is_empty() {
        return format!("it has none of class `{class}`");
    }
    let shown: Vec<&str> = present.iter().take(SHOWN).map(String::as_str).collect();
    let more = present.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("there are {}{more}", list(&shown))
}
