//! What a load did, kept with the model so that saving can undo it.
//!
//! The field `recorders` of a base model, which every base model has, keeps it.

use std::collections::BTreeSet;
use std::sync::Arc;

use burn::module::Module;

use super::assembly::Assembly;
use crate::class::{BaseModel, Edits, edited};

/// Which tensors of a checkpoint became which parameters of a model.
#[derive(Debug, Default)]
pub(crate) struct LoadedLayout {
    /// Where the base models were.
    pub(crate) bases: Vec<String>,
    /// Parameters that were made of other tensors, or had another name.
    pub(crate) made: Vec<Remembered>,
    /// Keys of parameters that were tensors of the same name.
    pub(crate) direct: BTreeSet<String>,
    /// Tensors that a parameter was there for under another key.
    pub(crate) repeated: Vec<Repeated>,
}

/// A tensor that was the same as a parameter, and has none of its own.
#[derive(Debug)]
pub(crate) struct Repeated {
    /// Its key in the checkpoint.
    pub(crate) key: String,
    pub(crate) shape: Vec<usize>,
    /// The key of the parameter.
    pub(crate) target: String,
}

/// Tensors that became parameters together.
#[derive(Debug)]
pub(crate) struct Remembered {
    /// Keys and shapes in the checkpoint.
    pub(crate) sources: Vec<(String, Vec<usize>)>,
    /// Keys of the parameters, and what they are made of.
    pub(crate) targets: Vec<(String, Assembly)>,
    /// As text; none where only the name differed.
    pub(crate) operations: Vec<String>,
}

/// What the model with these base models was loaded from; nothing if they come from several loads, or are at other
/// places than then.
pub(crate) fn common(bases: &[BaseModel]) -> Option<Arc<LoadedLayout>> {
    let loaded = bases.first()?.loaded.as_ref()?;
    let same = |base: &BaseModel| base.loaded.as_ref().is_some_and(|other| Arc::ptr_eq(other, loaded));
    let places = bases.iter().map(|base| &base.path).eq(&loaded.bases);
    (bases.iter().all(same) && places).then(|| Arc::clone(loaded))
}

/// `model` with `layout` kept by those of its base models that are at `places`.
///
/// This is a pass of its own: while tensors are put in, other models may be mapped on the same thread, by the caller's
/// callback or by work that the thread takes over from another.
pub(crate) fn remember<M: Module>(model: M, places: Vec<String>, layout: &Arc<LoadedLayout>) -> M {
    if places.is_empty() {
        return model;
    }
    let loaded = places.into_iter().map(|place| (place, Arc::clone(layout))).collect();
    edited(model, Edits { loaded, ..Edits::default() })
}
