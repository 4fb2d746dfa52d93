//! Replacing slots of a model that is there already.

use super::error::PatchError;
use crate::class::{Edits, ModuleClass, Slot, SlotInfo, edit, is_within, slots_of};
use burn::module::Module;
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;

/// What slots held before [`replace_slots`], to be put back.
#[must_use = "dropping it drops what the slots held before"]
#[derive(Clone)]
pub struct ReplacedSlots<C: ModuleClass> {
    /// By path.
    originals: Vec<(String, Slot<C>)>,
}

/// Replaces the slots of class `C` whose path contains `at`, and returns what they held.
///
/// `at` is one or several whole segments, where `*` is any one segment: `self_attn`, `layers.*.mlp`, `layers.0`, or `*`
/// for every slot of the class. `replacement` is given the path of each slot and what it holds, to take its
/// weights, to wrap it, or to look at it. Slots of the class inside one that is replaced go with it and are not replaced
/// themselves. The next capture sees the new layers, whatever was captured before.
///
/// Parameters of the model are not copied.
///
/// ```
/// # use burn::{module::Module, tensor::{Device, Tensor}};
/// # use patching_core::prelude::*;
/// # use patching_core::patch::{PatchError, replace_slots};
/// # #[derive(Module, Debug)]
/// # pub struct MyMlp {}
/// # #[module_class]
/// # impl MyMlp {
/// #     pub fn new(_init: &Init) -> Self { Self {} }
/// #     pub fn forward(&self, x: Tensor<2>) -> Tensor<2> { x }
/// # }
/// # #[derive(Module, Debug)]
/// # pub struct MyModel { layers: Vec<Slot<MyMlp>> }
/// #[derive(Module, Debug)]
/// struct Halved { inner: Slot<MyMlp> }
///
/// #[replaces(MyMlp)]
/// impl Halved {
///     fn new(init: &Init) -> Self { Self { inner: MyMlp::slot(init) } }
///     fn forward(&self, x: Tensor<2>) -> Tensor<2> { self.inner.forward(x) / 2.0 }
/// }
///
/// # let init = Init::new(&Device::flex());
/// # let mut model = MyModel { layers: vec![MyMlp::slot(&init), MyMlp::slot(&init)] };
/// let originals =
///     replace_slots::<MyMlp, _>(&mut model, "layers.0", |_path, mlp| Slot::of(Halved { inner: mlp.clone() }))?;
/// assert!(model.layers[0].implementation::<Halved>().is_some());
///
/// originals.put_back(&mut model)?;
/// assert!(model.layers[0].implementation::<MyMlp>().is_some());
/// # Ok::<(), PatchError>(())
/// ```
///
/// # Errors
///
/// [`PatchError::NoSlot`] if there is no such slot, and [`PatchError::InvalidPath`]. The model is then as it was.
pub fn replace_slots<C: ModuleClass, M: Module>(
    model: &mut M,
    at: &str,
    mut replacement: impl FnMut(&str, &Slot<C>) -> Slot<C>,
) -> Result<ReplacedSlots<C>, PatchError> {
    let segments = parse(at)?;
    let all = slots_of(model, TypeId::of::<C>());
    let (found, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(slot, _)| matches(&slot.path, &segments));
    if found.is_empty() {
        return Err(no_slot::<C>(at, others.into_iter().map(|(slot, _)| slot)));
    }
    let mut edits = Edits::default();
    let mut replaced = ReplacedSlots { originals: Vec::new() };
    let mut outer: Option<String> = None;
    for (SlotInfo { path, place, .. }, slot) in found {
        let Ok(slot) = slot.downcast::<Slot<C>>() else { continue };
        // what is inside a slot that is replaced goes with it; slots come from outside to inside
        if outer.as_ref().is_some_and(|outer| is_within(&place, outer)) {
            continue;
        }
        edits.slots.insert(place.clone(), Box::new(Some(replacement(&path, &slot))));
        replaced.originals.push((path, *slot));
        outer = Some(place);
    }
    edit(model, edits);
    Ok(replaced)
}

impl<C: ModuleClass> ReplacedSlots<C> {
    /// The paths of the slots that were replaced.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.originals().map(|(path, _)| path)
    }

    /// What each slot held, by its path.
    pub fn originals(&self) -> impl Iterator<Item = (&str, &Slot<C>)> {
        self.originals.iter().map(|(path, slot)| (path.as_str(), slot))
    }

    /// Puts back what the slots held: into the model that it is from, or another that has these slots, such as a copy.
    ///
    /// # Errors
    ///
    /// [`PatchError::NoSlot`] if `model` has not all of these slots. It is then as it was.
    pub fn put_back<M: Module>(&self, model: &mut M) -> Result<(), PatchError> {
        let present: Vec<SlotInfo> = slots_of(model, TypeId::of::<C>()).into_iter().map(|(slot, _)| slot).collect();
        // by path: a wrapper that was put around it since then has changed its place
        let places: HashMap<&str, &str> =
            present.iter().map(|slot| (slot.path.as_str(), slot.place.as_str())).collect();
        let mut slots = HashMap::new();
        for (path, slot) in self.originals() {
            let Some(place) = places.get(path) else {
                return Err(no_slot::<C>(path, present.into_iter()));
            };
            slots.insert((*place).to_owned(), Box::new(Some(slot.clone())) as Box<dyn Any>);
        }
        edit(model, Edits { slots, ..Edits::default() });
        Ok(())
    }
}

impl<C: ModuleClass> fmt::Debug for ReplacedSlots<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplacedSlots")
            .field("class", &C::NAME)
            .field("paths", &self.paths().collect::<Vec<_>>())
            .finish()
    }
}

fn no_slot<C: ModuleClass>(at: &str, present: impl Iterator<Item = SlotInfo>) -> PatchError {
    PatchError::NoSlot { class: C::NAME, at: at.to_owned(), present: present.map(|slot| slot.path).collect() }
}

/// The segments of a path, without leading and trailing dots.
fn parse(path: &str) -> Result<Vec<&str>, PatchError> {
    let segments: Vec<_> = path.trim_matches('.').split('.').collect();
    if segments.iter().any(|segment| segment.is_empty()) {
        return Err(PatchError::InvalidPath { path: path.to_owned() });
    }
    Ok(segments)
}

/// Whether `segments` are somewhere in `path`.
fn matches(path: &str, segments: &[&str]) -> bool {
    let path: Vec<_> = path.split('.').collect();
    let is = |(name, wanted): (&&str, &&str)| *wanted == "*" || name == wanted;
    path.windows(segments.len()).any(|window| window.iter().zip(segments).all(is))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_matched_by_whole_segments() {
        let found = |path: &str, at: &str| matches(path, &parse(at).expect("a path"));
        assert!(found("layers.1.self_attn", "self_attn"));
        assert!(found("layers.1.self_attn", "layers.1"));
        assert!(found("layers.1.self_attn", ".layers.*.self_attn."));
        assert!(found("layers.1.self_attn", "*"));
        assert!(!found("layers.11.self_attn", "layers.1"));
        assert!(!found("layers.1.self_attn", "attn"));
        assert!(!found("layers.1", "*.*.*"));
        assert!(parse("").is_err());
        assert!(parse("a..b").is_err());
    }
}
