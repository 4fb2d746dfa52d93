//! One walk over a model that meets every slot and every base model, with their paths.

use super::hooked::SlotId;
use super::module_class::ModuleClass;
use super::slot::Slot;
use burn::module::{Module, ModuleVisitor};
use std::any::{Any, TypeId};
use std::cell::RefCell;

/// A slot met on a walk.
#[derive(Clone, Debug)]
pub struct SlotInfo {
    /// Where the slot is, from the walked module (`layers.0.self_attn`).
    ///
    /// A replacement that keeps its original in a slot of its own adds nothing to the paths inside the original.
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

#[derive(Default)]
struct Walk {
    place: Vec<String>,
    slots: Vec<SlotInfo>,
    /// Places of base models: a dot behind each, so that a prefix test is a test of whole segments.
    bases: Vec<String>,
    /// Slots of this class are copied.
    copied_class: Option<TypeId>,
    /// With their places.
    copies: Vec<(String, Box<dyn Any>)>,
}

thread_local! {
    static WALK: RefCell<Option<Walk>> = const { RefCell::new(None) };
}

/// A walk is under way on this thread: hands it to `meet`. Other visits of a module pass by here too.
fn if_walking(meet: impl FnOnce(&mut Walk)) {
    WALK.with_borrow_mut(|walk| {
        if let Some(walk) = walk {
            meet(walk);
        }
    });
}

/// Called by every slot; `copy` is asked for a copy of it where one is wanted.
pub(crate) fn meet_slot(info: impl FnOnce(String) -> SlotInfo, copy: impl FnOnce() -> Box<dyn Any>) {
    if_walking(|walk| {
        let slot = info(walk.place.join("."));
        if walk.copied_class == Some(slot.class_id) {
            walk.copies.push((slot.place.clone(), copy()));
        }
        walk.slots.push(slot);
    });
}

/// Called by the `recorders` field of a base model.
pub(crate) fn meet_recorders() {
    if_walking(|walk| {
        let parents = walk.place.len().saturating_sub(1);
        let base =
            walk.place.get(..parents).unwrap_or_default().iter().fold(String::new(), |base, name| base + name + ".");
        walk.bases.push(base);
    });
}

struct Walker;

/// A variant of an enum is a choice between layers: in paths as in checkpoints it leaves no trace.
pub(super) fn is_variant(container: &str) -> bool {
    container.starts_with("Enum:")
}

impl ModuleVisitor for Walker {
    fn enter_module(&mut self, name: &str, container: &str) {
        if !is_variant(container) {
            if_walking(|walk| walk.place.push(name.to_owned()));
        }
    }
    fn exit_module(&mut self, _name: &str, container: &str) {
        if !is_variant(container) {
            if_walking(|walk| {
                walk.place.pop();
            });
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
    settle_paths(&mut walk.slots);
    walk
}

/// A slot around the one that is looked at.
struct Around {
    slot: usize,
    /// The segment of the place that is no part of the path, if the slot holds the original of the one around it.
    left_out: Option<usize>,
}

/// Leaves out of the paths what replacements add that keep their original in a slot of their own. Slots come from
/// outside to inside.
fn settle_paths(slots: &mut [SlotInfo]) {
    let mut around = Vec::<Around>::new();
    for at in 0..slots.len() {
        let Some((before, [slot, ..])) = slots.split_at_mut_checked(at) else { return };
        while around.last().is_some_and(|outer| !before.get(outer.slot).is_some_and(|outer| is_inside(slot, outer))) {
            around.pop();
        }
        let replaced_by = |around: &Around| before.get(around.slot).filter(|outer| replaces_original(outer, slot));
        let (depth, nearest) = (segments(&slot.place), around.last().and_then(replaced_by));
        let left_out = nearest.filter(|outer| segments(&outer.place) + 1 == depth).map(|_| depth - 1);
        let original_of = around.iter().find_map(replaced_by).map(|outer| outer.id);
        slot.original_of = original_of;
        around.push(Around { slot: at, left_out });
        if around.iter().any(|around| around.left_out.is_some()) {
            let kept = slot
                .place
                .split('.')
                .enumerate()
                .filter(|(segment, _)| !around.iter().any(|around| around.left_out == Some(*segment)));
            slot.path = kept.map(|(_, name)| name).collect::<Vec<_>>().join(".");
        }
    }
}

fn segments(place: &str) -> usize {
    if place.is_empty() { 0 } else { place.split('.').count() }
}

fn is_inside(slot: &SlotInfo, outer: &SlotInfo) -> bool {
    outer.place.is_empty() || slot.place.strip_prefix(&*outer.place).is_some_and(|rest| rest.starts_with('.'))
}

/// Whether `outer` holds a replacement of the class that `slot`, inside it, is of.
fn replaces_original(outer: &SlotInfo, slot: &SlotInfo) -> bool {
    outer.class_id == slot.class_id && outer.is_replaced()
}

/// Every slot of `module`, nested base models included, in the order of its fields.
pub fn all_slots<M: Module>(module: &M) -> Vec<SlotInfo> {
    walk(module, None).slots
}

/// The slots that belong to a base model itself: those inside nested base models are theirs.
pub(crate) struct OwnSlots {
    pub(crate) slots: Vec<SlotInfo>,
    /// What a replacement calls of its original is its own affair: slots with an original, and the slots with the
    /// replacements that they are for.
    pub(crate) originals: Vec<(SlotId, SlotId)>,
}

pub(crate) fn own_slots<M: Module>(module: &M) -> OwnSlots {
    let Walk { mut slots, bases, .. } = walk(module, None);
    // the empty base is `module` itself
    let is_nested =
        |slot: &SlotInfo| bases.iter().any(|base| !base.is_empty() && slot.place.starts_with(base.as_str()));
    slots.retain(|slot| !is_nested(slot));
    let originals = slots.iter().filter_map(|slot| Some((slot.id, slot.original_of?))).collect();
    slots.retain(|slot| !slot.is_original_inside());
    OwnSlots { slots, originals }
}

/// Every slot of `module` with the class `class`, and a copy of each.
pub(crate) fn slots_of<M: Module>(module: &M, class: TypeId) -> Vec<(SlotInfo, Box<dyn Any>)> {
    let Walk { slots, copies, .. } = walk(module, Some(class));
    let of_class = slots.into_iter().filter(|slot| slot.class_id == class);
    // both were met in the same order
    of_class.zip(copies).map(|(slot, (_, copy))| (slot, copy)).filter(|(slot, _)| !slot.is_original_inside()).collect()
}

/// The places of all slots that hold the original of the replacement around them, directly as a field of it: their
/// last segment is no part of any path.
pub(crate) fn transparent_places<M: Module>(module: &M) -> Vec<String> {
    let slots = walk(module, None).slots;
    let outer = |slot: &SlotInfo| {
        let place = slot.place.rsplit_once('.').map_or("", |(outer, _)| outer);
        slots.iter().any(|outer| outer.place == place && replaces_original(outer, slot))
    };
    slots.iter().filter(|slot| slot.is_original_inside() && outer(slot)).map(|slot| slot.place.clone()).collect()
}

/// The base models of `module` by their places, each with its slots, those of nested base models left out.
pub(crate) fn base_models<M: Module>(module: &M) -> Vec<(String, Vec<SlotInfo>)> {
    let Walk { slots, bases, .. } = walk(module, None);
    let owner = |slot: &SlotInfo| {
        bases.iter().filter(|base| slot.place.starts_with(base.as_str())).max_by_key(|base| base.len())
    };
    let own = |base: &String| slots.iter().filter(|slot| owner(slot) == Some(base)).cloned().collect();
    bases.iter().map(|base| (base.trim_end_matches('.').to_owned(), own(base))).collect()
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
