//! Putting other values into slots and into the `recorders` fields of a model, wherever in it they are.

use super::walk::{field_name, is_variant};
use crate::capture::PointedAt;
use crate::weights::conversion::LoadedLayout;
use burn::Tensor;
use burn::module::{Flag, Module, ModuleMapper, Param};
use burn::tensor::{Bool, Int};
use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// What to put where, by place. A slot is an `Option<Slot<C>>`.
#[derive(Default)]
pub(crate) struct Edits {
    pub(crate) slots: HashMap<String, Box<dyn Any>>,
    /// By the place of the base model.
    pub(crate) recorders: HashMap<String, Arc<[PointedAt]>>,
    /// What base models were loaded from, by their places.
    pub(crate) loaded: HashMap<String, Arc<LoadedLayout>>,
}

/// What a `recorders` field is to hold from now on; what is none stays.
#[derive(Default)]
pub(crate) struct EditedRecorders {
    pub(crate) pointed_at: Option<Arc<[PointedAt]>>,
    pub(crate) loaded: Option<Arc<LoadedLayout>>,
}

struct Editing {
    place: Vec<String>,
    edits: Edits,
}

thread_local! {
    static EDITING: RefCell<Option<Editing>> = const { RefCell::new(None) };
}

/// Edits are being made on this thread. Other maps of a module pass by here too.
fn with_editing<T>(then: impl FnOnce(&mut Editing) -> T) -> Option<T> {
    EDITING.with_borrow_mut(|editing| editing.as_mut().map(then))
}

/// What `slot` is to be. `S` is its type.
pub(crate) fn edited_slot<S: 'static>(slot: S) -> S {
    let new = with_editing(|editing| {
        if editing.edits.slots.is_empty() {
            return None;
        }
        let new = editing.edits.slots.get_mut(&editing.place.join("."))?;
        new.downcast_mut::<Option<S>>()?.take()
    });
    new.flatten().unwrap_or(slot)
}

/// What the `recorders` field here is to hold from now on.
pub(crate) fn edited_recorders() -> EditedRecorders {
    let edited = with_editing(|editing| {
        let parents = editing.place.len().saturating_sub(1);
        let base = editing.place.get(..parents).unwrap_or_default().join(".");
        let Edits { slots: _, recorders, loaded } = &mut editing.edits;
        EditedRecorders { pointed_at: recorders.remove(&base), loaded: loaded.remove(&base) }
    });
    edited.unwrap_or_default()
}

/// Leaves every parameter as it is, initialised or not.
struct Editor;

impl ModuleMapper for Editor {
    fn enter_module(&mut self, name: &str, container: &str) {
        if !is_variant(container) {
            with_editing(|editing| editing.place.push(field_name(name, container).to_owned()));
        }
    }
    fn exit_module(&mut self, _name: &str, container: &str) {
        if !is_variant(container) {
            with_editing(|editing| drop(editing.place.pop()));
        }
    }
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param
    }
    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        param
    }
    fn map_bool<const D: usize>(&mut self, param: Param<Tensor<D, Bool>>) -> Param<Tensor<D, Bool>> {
        param
    }
    fn map_flag(&mut self, flag: Param<Flag>) -> Param<Flag> {
        flag
    }
}

/// Puts back the edits that were being made, also after a panic in a module's own `map`.
struct Restore(Option<Editing>);
impl Drop for Restore {
    fn drop(&mut self) {
        EDITING.replace(self.0.take());
    }
}

/// Makes `edits` in `model`. Parameters are shared with what it was, so nothing is copied.
pub(crate) fn edit<M: Module>(model: &mut M, edits: Edits) {
    *model = edited(model.clone(), edits);
}

/// `model` with `edits` made in it.
pub(crate) fn edited<M: Module>(model: M, edits: Edits) -> M {
    let _restore = Restore(EDITING.replace(Some(Editing { place: Vec::new(), edits })));
    model.map(&mut Editor)
}
