use crate::capture::PointedAt;
use crate::class::{Edits, SlotInfo, base_models, edit};
use crate::names::short_name;
use burn::module::Module;

/// Points the recorders of `model` at what its slots really hold, in this instance only.
///
/// A replacement in a slot is recorded in any case. Afterwards
/// [`OutputRecorders::pointed_at`](crate::capture::OutputRecorders::pointed_at) of every base model in it says what
/// stands in for which class. `from_pretrained` and `from_config` call it; after another construction, or after slots
/// of a live model were replaced, it is the caller's to call.
pub fn patch_output_recorders<M: Module>(model: &mut M) {
    let mut edits = Edits::default();
    for (place, slots) in base_models(model) {
        edits.recorders.insert(place, replacements(&slots).into());
    }
    edit(model, edits);
}

/// Each pair of class and replacement among `slots` once.
fn replacements(slots: &[SlotInfo]) -> Vec<PointedAt> {
    let mut found = Vec::new();
    for slot in slots.iter().filter(|slot| slot.is_replaced() && !slot.is_original_inside()) {
        let pointed = PointedAt { class: slot.class, replacement: short_name(slot.implementation) };
        if !found.contains(&pointed) {
            found.push(pointed);
        }
    }
    found
}
