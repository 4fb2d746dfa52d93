//! One walk over a model that meets every slot and every base model, with their paths.

use super::hooked::SlotId;
use burn::module::{Module, ModuleVisitor};
use std::any::TypeId;
use std::cell::RefCell;

/// A slot met on a walk.
#[derive(Clone, Debug)]
pub struct SlotInfo {
    /// Where the slot is, from the walked module (`layers.0.self_attn`).
    pub path: String,
    /// The name of the slot's class.
    pub class: &'static str,
    /// The type name of what the slot holds.
    pub implementation: &'static str,
    pub(crate) class_id: TypeId,
    /// How many elements `forward` returns.
    pub(crate) arity: usize,
    pub(crate) id: SlotId,
}

#[derive(Default)]
struct Walk {
    path: Vec<String>,
    slots: Vec<SlotInfo>,
    /// Paths of base models: a dot behind each, so that a prefix test is a test of whole segments.
    bases: Vec<String>,
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

pub(crate) fn meet_slot(info: impl FnOnce(String) -> SlotInfo) {
    if_walking(|walk| {
        let slot = info(walk.path.join("."));
        walk.slots.push(slot);
    });
}

/// Called by the `recorders` field of a base model.
pub(crate) fn meet_recorders() {
    if_walking(|walk| {
        let parents = walk.path.len().saturating_sub(1);
        let base =
            walk.path.get(..parents).unwrap_or_default().iter().fold(String::new(), |base, name| base + name + ".");
        walk.bases.push(base);
    });
}

struct Walker;

/// A variant of an enum is a choice between layers: in paths as in checkpoints it leaves no trace.
fn is_variant(container: &str) -> bool {
    container.starts_with("Enum:")
}

impl ModuleVisitor for Walker {
    fn enter_module(&mut self, name: &str, container: &str) {
        if !is_variant(container) {
            if_walking(|walk| walk.path.push(name.to_owned()));
        }
    }
    fn exit_module(&mut self, _name: &str, container: &str) {
        if !is_variant(container) {
            if_walking(|walk| {
                walk.path.pop();
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

fn walk<M: Module>(module: &M) -> Walk {
    let _restore = Restore(WALK.replace(Some(Walk::default())));
    module.visit(&mut Walker);
    WALK.take().unwrap_or_default()
}

/// Every slot of `module`, nested base models included, in the order of its fields.
pub fn all_slots<M: Module>(module: &M) -> Vec<SlotInfo> {
    walk(module).slots
}

/// The slots that belong to the base model `module` itself: those inside nested base models are theirs.
pub(crate) fn own_slots<M: Module>(module: &M) -> Vec<SlotInfo> {
    let Walk { mut slots, bases, .. } = walk(module);
    // the empty base is `module` itself
    slots.retain(|slot| !bases.iter().any(|base| !base.is_empty() && slot.path.starts_with(base.as_str())));
    slots
}
