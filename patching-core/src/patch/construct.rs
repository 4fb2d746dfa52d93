//! What a construction with patches knows.

use super::error::{PatchError, Unfit};
use super::set::PatchSet;
use crate::class::{ModuleClass, Slot};
use std::any::TypeId;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The patches in force for one construction, and what they could not do. Shared by all constructors of it, on
/// whatever threads they run.
#[derive(Debug)]
pub(crate) struct Patching {
    set: PatchSet,
    replaced: AtomicBool,
    /// Pattern and class, in the order of construction.
    unfit: Mutex<Vec<(String, &'static str)>>,
}

impl Patching {
    pub(crate) fn new(set: PatchSet) -> Arc<Self> {
        Arc::new(Self { set, replaced: AtomicBool::new(false), unfit: Mutex::default() })
    }

    /// The constructor that takes the place of `C::new`.
    pub(crate) fn choose<C: ModuleClass>(&self) -> Option<C::New<Slot<C>>> {
        let (key, replacement) = self.set.find(C::NAME)?;
        // a replacement that is a class of its own is what it is already
        if replacement.is_original() || replacement.implementation() == Some(TypeId::of::<C>()) {
            return None;
        }
        let constructor = replacement.constructor::<C>();
        if constructor.is_some() {
            self.replaced.store(true, Ordering::Relaxed);
        } else if !self.set.is_exact(key) {
            // an exact name that gets here is that of another crate's class: they are told apart by their types
            let mut unfit = self.unfit.lock().unwrap_or_else(PoisonError::into_inner);
            if !unfit.iter().any(|(known, class)| known == key && *class == C::NAME) {
                unfit.push((key.to_owned(), C::NAME));
            }
        }
        constructor
    }

    /// Whether anything was replaced.
    pub(crate) fn has_replaced(&self) -> bool {
        self.replaced.load(Ordering::Relaxed)
    }

    pub(crate) fn check(&self) -> Result<(), PatchError> {
        let mut by_key = Vec::<(&str, Vec<&'static str>)>::new();
        let unfit = self.unfit.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, class) in unfit.iter() {
            match by_key.iter_mut().find(|(known, _)| known == key) {
                Some((_, classes)) => classes.push(class),
                None => by_key.push((key, vec![class])),
            }
        }
        let unfit: Vec<Unfit> = by_key.into_iter().filter_map(|(key, classes)| self.set.unfit(key, classes)).collect();
        if unfit.is_empty() { Ok(()) } else { Err(PatchError::Unfit { unfit }) }
    }
}

/// The classes whose replacements are being constructed, from inside to outside. There the originals are meant.
#[derive(Debug)]
pub(crate) struct Inside {
    class: TypeId,
    outer: Option<Arc<Inside>>,
}

impl Inside {
    pub(crate) fn new(class: TypeId, outer: Option<Arc<Self>>) -> Arc<Self> {
        Arc::new(Self { class, outer })
    }

    pub(crate) fn contains(&self, class: TypeId) -> bool {
        let mut inside = Some(self);
        while let Some(here) = inside {
            if here.class == class {
                return true;
            }
            inside = here.outer.as_deref();
        }
        false
    }
}
