//! Paths: places without the fields in which replacements keep their original.

use super::walk::{BaseModel, SlotInfo};
use std::collections::{HashMap, HashSet};

/// Says of each slot whether it holds the original of a replacement around it, and leaves out of all paths the fields
/// that are there for nothing else. Slots come from outside to inside. Returns the places of those fields.
///
/// A field is left out if it is the only slot of that class directly in the replacement: two that both were left out
/// would be one.
pub(super) fn settle(slots: &mut [SlotInfo], bases: &mut [BaseModel]) -> HashSet<String> {
    let transparent = mark_originals(slots);
    if !transparent.is_empty() {
        for slot in slots {
            slot.path = without(&slot.place, &transparent);
        }
        for base in bases {
            base.path = without(&base.place, &transparent);
        }
    }
    transparent
}

fn mark_originals(slots: &mut [SlotInfo]) -> HashSet<String> {
    // the slots around the one that is looked at
    let mut around = Vec::<usize>::new();
    // by the replacement, the slots directly in it that are of the class it replaces
    let mut direct = HashMap::<usize, Vec<usize>>::new();
    for at in 0..slots.len() {
        let Some((before, [slot, ..])) = slots.split_at_mut_checked(at) else { break };
        while around
            .last()
            .is_some_and(|&outer| !before.get(outer).is_some_and(|outer| is_within(&slot.place, &outer.place)))
        {
            around.pop();
        }
        let replaced = |outer: &usize| before.get(*outer).filter(|outer| replaces_original(outer, slot));
        let is_field = |outer: &&SlotInfo| segments(&outer.place) + 1 == segments(&slot.place);
        if let Some(&nearest) = around.last()
            && replaced(&nearest).as_ref().is_some_and(is_field)
        {
            direct.entry(nearest).or_default().push(at);
        }
        let original_of = around.iter().find_map(replaced).map(|outer| outer.id);
        slot.original_of = original_of;
        around.push(at);
    }
    let only =
        direct.values().filter_map(|inside| if let [only] = inside.as_slice() { slots.get(*only) } else { None });
    only.map(|slot| slot.place.clone()).collect()
}

/// `place` without the segments at which it is one of `transparent`.
fn without(place: &str, transparent: &HashSet<String>) -> String {
    let mut path = String::with_capacity(place.len());
    let mut end = 0;
    for name in place.split('.') {
        end += name.len();
        if !place.get(..end).is_some_and(|here| transparent.contains(here)) {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(name);
        }
        end += 1;
    }
    path
}

/// The places around `place`, from the nearest to that of the whole module, which is empty.
pub(super) fn around(place: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(place).filter(|place| !place.is_empty());
    std::iter::from_fn(move || {
        rest = rest.filter(|rest| !rest.is_empty()).map(|rest| rest.rsplit_once('.').map_or("", |(outer, _)| outer));
        rest
    })
}

fn segments(place: &str) -> usize {
    if place.is_empty() { 0 } else { place.split('.').count() }
}

/// Whether `slot`, which was met later, is inside `outer`. Of two at one place the second is, in a variant of an enum.
/// Whether `path` is `outer` or inside it, at a whole segment. Everything is inside the empty path.
pub(crate) fn is_within(path: &str, outer: &str) -> bool {
    outer.is_empty() || path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Whether `outer` holds a replacement of the class that `slot`, inside it, is of.
fn replaces_original(outer: &SlotInfo, slot: &SlotInfo) -> bool {
    outer.class_id == slot.class_id && outer.is_replaced()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_lose_what_is_transparent() {
        let transparent = HashSet::from(["a.inner".to_owned(), "a.inner.b.inner".to_owned()]);
        for (place, path) in [
            ("a.inner", "a"),
            ("a.inner.c", "a.c"),
            ("a.inner.b.inner.inner", "a.b.inner"),
            ("b.inner", "b.inner"),
            ("", ""),
        ] {
            assert_eq!(without(place, &transparent), path, "{place}");
        }
    }

    #[test]
    fn places_around_a_place() {
        assert_eq!(around("a.b.c").collect::<Vec<_>>(), ["a.b", "a", ""]);
        assert_eq!(around("a").collect::<Vec<_>>(), [""]);
        assert_eq!(around("").count(), 0);
    }
}
