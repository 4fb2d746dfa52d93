//! One walk over a model that meets every slot and every base model, with their paths.

use super::hooked::SlotId;
use super::module_class::ModuleClass;
use super::paths::{around, settle};
use super::slot::Slot;
use crate::weights::conversion::LoadedLayout;
use burn::module::{Module, ModuleVisitor};
use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A slot met on a walk.
#[derive(Clone, Debug)]
pub struct SlotInfo {
    /// Where the slot is, from the walked module (`layers.0.self_attn`).
    ///
    /// A replacement that keeps its original in a slot of its own, and no other slot of that class beside it, adds
    /// nothing to the paths inside the original.
    pub path: String,
    /// The name of the slot's class.
    pub class: &'static str,
    /// The type name of what the slot holds.
    pub implementation: &'static str,
    pub(crate) class_id: TypeId,
    pub(crate) implementation_id: TypeId,
    /// How many elements `forward` returns.
    pub(crate) arity: usize,
    pub(crate) id: SlotId,
    /// Where the slot is by the names of all fields.
    pub(crate) place: String,
    /// It holds the original of the replacement in this slot around it, which is the one that callers see.
    pub(crate) original_of: Option<SlotId>,
}

impl SlotInfo {
    /// Whether it is there for a replacement around it, which is the one that callers see.
    pub(crate) fn is_original_inside(&self) -> bool {
        self.original_of.is_some()
    }

    /// Whether the slot holds something else than its class.
    pub fn is_replaced(&self) -> bool {
        self.implementation_id != self.class_id
    }
}

/// A base model met on a walk: a module with a field `recorders`.
#[derive(Clone, Debug)]
pub(crate) struct BaseModel {
    /// Where it is, as paths of slots tell it.
    pub(crate) path: String,
    /// Where it is by the names of all fields.
    pub(crate) place: String,
    /// The name of its Rust type.
    pub(crate) class: String,
    /// What it was loaded from.
    pub(crate) loaded: Option<Arc<LoadedLayout>>,
}

/// All that one walk finds.
#[derive(Default)]
pub(crate) struct Survey {
    /// From outside to inside, in the order of fields.
    pub(crate) slots: Vec<SlotInfo>,
    pub(crate) bases: Vec<BaseModel>,
    /// The places of the slots whose field is no part of any path.
    pub(crate) transparent: HashSet<String>,
}

#[derive(Default)]
struct Walk {
    place: Vec<String>,
    /// What the module is in that was entered last.
    container: String,
    found: Survey,
    /// Slots of this class are copied.
    copied_class: Option<TypeId>,
    copies: Vec<Box<dyn Any>>,
}

thread_local! {
    static WALK: RefCell<Option<Walk>> = const { RefCell::new(None) };
}

/// A walk is under way on this thread: hands it to `meet`. Other visits of a module pass by here too.
fn if_walking<T>(meet: impl FnOnce(&mut Walk) -> T) -> Option<T> {
    WALK.with_borrow_mut(|walk| walk.as_mut().map(meet))
}

/// Called by every slot; `copy` is asked for a copy of it where one is wanted.
pub(crate) fn meet_slot(info: impl FnOnce(String) -> SlotInfo, copy: impl FnOnce() -> Box<dyn Any>) {
    let copied = if_walking(|walk| {
        let slot = info(walk.place.join("."));
        let copied = walk.copied_class == Some(slot.class_id);
        walk.found.slots.push(slot);
        copied
    });
    if copied == Some(true) {
        // A copy is made by the module's own `clone`, which may visit modules: none of them is on this walk.
        let walk = Restore(WALK.take());
        let copy = copy();
        drop(walk);
        if_walking(|walk| walk.copies.push(copy));
    }
}

/// Called by the `recorders` field of a base model.
pub(crate) fn meet_recorders(loaded: Option<&Arc<LoadedLayout>>) {
    if_walking(|walk| {
        let parents = walk.place.len().saturating_sub(1);
        let place = walk.place.get(..parents).unwrap_or_default().join(".");
        let class = walk.container.split_once(':').map_or(walk.container.as_str(), |(_, class)| class).to_owned();
        walk.found.bases.push(BaseModel { path: place.clone(), place, class, loaded: loaded.cloned() });
    });
}

struct Walker;

/// A variant of an enum is a choice between layers: in paths as in checkpoints it leaves no trace.
pub(crate) fn is_variant(container: &str) -> bool {
    container.starts_with("Enum:")
}

/// The name of a field in paths, as checkpoints have it.
///
/// Rust has no field called `self`, `super`, `crate` or `Self`: `self_` stands for it. Other keywords are raw names.
pub(crate) fn field_name<'n>(name: &'n str, container: &str) -> &'n str {
    match name {
        "self_" | "super_" | "crate_" | "Self_" if container.starts_with("Struct:") => name.trim_end_matches('_'),
        name => name.strip_prefix("r#").unwrap_or(name),
    }
}

impl ModuleVisitor for Walker {
    fn enter_module(&mut self, name: &str, container: &str) {
        if !is_variant(container) {
            if_walking(|walk| {
                walk.place.push(field_name(name, container).to_owned());
                container.clone_into(&mut walk.container);
            });
        }
    }
    fn exit_module(&mut self, _name: &str, container: &str) {
        if !is_variant(container) {
            if_walking(|walk| walk.place.pop());
        }
    }
}

/// Puts back the walk that was under way, also after a panic in a module's own `visit`.
struct Restore(Option<Walk>);
impl Drop for Restore {
    fn drop(&mut self) {
        WALK.replace(self.0.take());
    }
}

fn walk<M: Module>(module: &M, copied_class: Option<TypeId>) -> Walk {
    let _restore = Restore(WALK.replace(Some(Walk { copied_class, ..Walk::default() })));
    module.visit(&mut Walker);
    let mut walk = WALK.take().unwrap_or_default();
    let Survey { slots, bases, transparent } = &mut walk.found;
    *transparent = settle(slots, bases);
    walk
}

/// Every slot and every base model of `module`.
pub(crate) fn survey<M: Module>(module: &M) -> Survey {
    walk(module, None).found
}

/// Every slot of `module`, nested base models included, in the order of its fields.
pub fn all_slots<M: Module>(module: &M) -> Vec<SlotInfo> {
    survey(module).slots
}

/// The slots that belong to a base model itself: those inside nested base models are theirs.
pub(crate) struct OwnSlots {
    pub(crate) slots: Vec<SlotInfo>,
    /// What a replacement calls of its original is its own affair: slots with an original, and the slots with the
    /// replacements that they are for.
    pub(crate) originals: Vec<(SlotId, SlotId)>,
}

pub(crate) fn own_slots<M: Module>(module: &M) -> OwnSlots {
    let Survey { mut slots, bases, .. } = survey(module);
    // that of the empty place is `module` itself
    let nested: HashSet<&str> =
        bases.iter().map(|base| base.place.as_str()).filter(|place| !place.is_empty()).collect();
    if !nested.is_empty() {
        slots.retain(|slot| !around(&slot.place).any(|place| nested.contains(place)));
    }
    let originals = slots.iter().filter_map(|slot| Some((slot.id, slot.original_of?))).collect();
    slots.retain(|slot| !slot.is_original_inside());
    OwnSlots { slots, originals }
}

/// Every slot of `module` with the class `class`, and a copy of each.
pub(crate) fn slots_of<M: Module>(module: &M, class: TypeId) -> Vec<(SlotInfo, Box<dyn Any>)> {
    let Walk { found, copies, .. } = walk(module, Some(class));
    let of_class = found.slots.into_iter().filter(|slot| slot.class_id == class);
    // both were met in the same order
    of_class.zip(copies).filter(|(slot, _)| !slot.is_original_inside()).collect()
}

/// The base models of `module` by their places, each with its slots, those of nested base models left out.
pub(crate) fn base_models<M: Module>(module: &M) -> Vec<(String, Vec<SlotInfo>)> {
    let Survey { slots, bases, .. } = survey(module);
    let numbers: HashMap<String, usize> =
        bases.iter().enumerate().map(|(number, base)| (base.place.clone(), number)).collect();
    let mut found: Vec<_> = bases.into_iter().map(|base| (base.place, Vec::new())).collect();
    for slot in slots {
        let owner = around(&slot.place).find_map(|place| numbers.get(place));
        if let Some((_, own)) = owner.and_then(|&owner| found.get_mut(owner)) {
            own.push(slot);
        }
    }
    found
}

/// The slots of class `C` in `module`, with their paths, in the order of its fields.
///
/// They are copies, which share their parameters with the model: to look at, or to find out what a slot holds.
///
/// ```ignore
/// for (path, slot) in slots::<LlamaAttention, _>(&model) {
///     println!("{path}: {}", slot.implementation_name());
/// }
/// ```
pub fn slots<C: ModuleClass, M: Module>(module: &M) -> Vec<(String, Slot<C>)> {
    let all = slots_of(module, TypeId::of::<C>()).into_iter();
    all.filter_map(|(slot, copy)| Some((slot.path, *copy.downcast::<Slot<C>>().ok()?))).collect()
}
