//! Implementations that configs choose by name.

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;

/// Implementations by name: those that come along, and those that the program registered.
pub(crate) struct Named<T> {
    built_in: Vec<&'static str>,
    by_name: DashMap<String, T>,
}

/// Why an implementation was not registered. Each interface has an error of its own with these cases.
pub(crate) enum Refused {
    Taken(String),
    BuiltIn(String),
    Empty,
}

impl<T: Clone> Named<T> {
    pub(crate) fn new<const N: usize>(built_in: [(&'static str, T); N]) -> Self {
        Self {
            built_in: built_in.iter().map(|(name, _)| *name).collect(),
            by_name: built_in.into_iter().map(|(name, by)| (name.to_owned(), by)).collect(),
        }
    }

    /// On an error nothing changes.
    pub(crate) fn register(&self, name: String, implementation: T, overwrite: bool) -> Result<(), Refused> {
        if name.is_empty() {
            return Err(Refused::Empty);
        }
        if self.built_in.contains(&name.as_str()) {
            return Err(Refused::BuiltIn(name));
        }
        match self.by_name.entry(name) {
            Entry::Occupied(taken) if !overwrite => Err(Refused::Taken(taken.key().clone())),
            entry => {
                entry.insert(implementation);
                Ok(())
            }
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<T> {
        self.by_name.get(name).map(|found| found.clone())
    }

    /// Sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.by_name.iter().map(|entry| entry.key().clone()).collect();
        names.sort();
        names
    }
}
