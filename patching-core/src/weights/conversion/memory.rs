//! What a load did, kept with the model so that saving can undo it.
//!
//! The field `recorders` of a base model, which every base model has, keeps it: a visit or a mapping of the model passes
//! by that field, but cannot name it. So both go by a value of the thread, as a walk over the slots does.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use burn::module::{Module, ModuleVisitor};

use super::assembly::Assembly;

/// Which tensors of a checkpoint became which parameters of a model.
#[derive(Debug, Default)]
pub(crate) struct LoadedLayout {
    /// Where the base models were.
    pub(crate) bases: Vec<String>,
    /// Parameters that were made of other tensors, or had another name.
    pub(crate) made: Vec<Remembered>,
    /// Keys of parameters that were tensors of the same name.
    pub(crate) direct: BTreeSet<String>,
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

/// A base model that was met on a walk.
#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) path: String,
    /// The name of its Rust type.
    pub(crate) class: String,
    pub(crate) loaded: Option<Arc<LoadedLayout>>,
}

#[derive(Default)]
struct Walk {
    steps: Vec<(String, String)>,
    bases: Vec<Base>,
}

thread_local! {
    static WALK: RefCell<Option<Walk>> = const { RefCell::new(None) };
    static PLACED: RefCell<Option<Arc<LoadedLayout>>> = const { RefCell::new(None) };
}

/// Called by the `recorders` field of a base model that is visited.
pub(crate) fn meet(loaded: Option<&Arc<LoadedLayout>>) {
    WALK.with_borrow_mut(|walk| {
        let Some(walk) = walk else {
            return;
        };
        let Some(((_, container), parents)) = walk.steps.split_last() else {
            return;
        };
        let names: Vec<_> = parents.iter().map(|(name, _)| name.as_str()).collect();
        let class = container.split_once(':').map_or(container.as_str(), |(_, class)| class);
        let base = Base { path: names.join("."), class: class.to_owned(), loaded: loaded.cloned() };
        walk.bases.push(base);
    });
}

/// Called by the `recorders` field of a base model that is mapped: what it is to keep.
pub(crate) fn placed() -> Option<Arc<LoadedLayout>> {
    PLACED.with_borrow(Option::clone)
}

struct Walker;

impl ModuleVisitor for Walker {
    fn enter_module(&mut self, name: &str, container: &str) {
        WALK.with_borrow_mut(|walk| {
            if let Some(walk) = walk {
                walk.steps.push((name.to_owned(), container.to_owned()));
            }
        });
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        WALK.with_borrow_mut(|walk| {
            if let Some(walk) = walk {
                walk.steps.pop();
            }
        });
    }
}

/// Puts back the walk that was under way, also after a panic in a module's own `visit`.
struct RestoreWalk(Option<Walk>);

impl Drop for RestoreWalk {
    fn drop(&mut self) {
        WALK.replace(self.0.take());
    }
}

/// The base models in `module`, itself included.
pub(crate) fn bases<M: Module>(module: &M) -> Vec<Base> {
    let _restore = RestoreWalk(WALK.replace(Some(Walk::default())));
    module.visit(&mut Walker);
    WALK.take().unwrap_or_default().bases
}

struct RestorePlaced(Option<Arc<LoadedLayout>>);

impl Drop for RestorePlaced {
    fn drop(&mut self) {
        PLACED.replace(self.0.take());
    }
}

/// Carries out `map`, during which base models that are mapped get `layout` to keep.
pub(crate) fn place<T>(layout: Arc<LoadedLayout>, map: impl FnOnce() -> T) -> T {
    let _restore = RestorePlaced(PLACED.replace(Some(layout)));
    map()
}

/// What the model with these base models was loaded from; nothing if they come from several loads, or are at other
/// places than then.
pub(crate) fn common(bases: &[Base]) -> Option<Arc<LoadedLayout>> {
    let loaded = bases.first()?.loaded.as_ref()?;
    let same = |base: &Base| base.loaded.as_ref().is_some_and(|other| Arc::ptr_eq(other, loaded));
    let places = bases.iter().map(|base| &base.path).eq(&loaded.bases);
    (bases.iter().all(same) && places).then(|| Arc::clone(loaded))
}
