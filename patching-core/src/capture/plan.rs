//! What a request means for one model: which slots keep which elements. A pure function of the two.

use super::error::CaptureError;
use super::output::ModelOutput;
use super::recorder::{CanRecordOutputs, OutputRecorder};
use super::selection::{Flag, Misfit, Selection};
use crate::class::{OwnSlots, SlotId, SlotInfo, is_within, own_slots};
use crate::names::near;
use dashmap::DashMap;
use std::any::Any;
use std::fmt;
use std::sync::{Arc, LazyLock};

/// More values than any model has: a config that says so is wrong, and a list of their positions would not fit.
const MOST: usize = 1 << 20;

/// A key that is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) key: &'static str,
    pub(crate) flag: Flag,
    /// It only follows another key; nobody named it.
    pub(crate) follows: bool,
}

/// Which slots of a model record what, for one request.
///
/// `Display` prints it; [`keys`](Self::keys) gives it to programs. Lengths are what the config says
/// (`num_hidden_layers_key`), else those of a run that calls each slot once.
#[derive(Clone, Debug)]
pub struct CapturePlan {
    model: &'static str,
    keys: Vec<PlannedKey>,
    /// Ascending by slot.
    sinks: Vec<Sink>,
    /// Slots with the original of a replacement, ascending, and the slots of the replacements.
    originals: Vec<(SlotId, SlotId)>,
}

/// One key of a slot: where its call leaves a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sink {
    slot: SlotId,
    pub(crate) key: usize,
    pub(crate) row: usize,
    pub(crate) element: usize,
}

/// A key of a plan.
#[derive(Clone, Debug)]
pub struct PlannedKey {
    pub(crate) key: &'static str,
    pub(crate) rows: Vec<Row>,
    /// The sequence begins with the input of the first slot called.
    pub(crate) initial: bool,
    pub(crate) selection: Option<Selection>,
    /// How many values there will be: by what the config says, else if each slot is called once.
    pub(crate) len: usize,
    /// The config says how many values there are, so slots may be called several times.
    pub(crate) counted: bool,
    pub(crate) follows: bool,
    /// A slot lies inside another, whose value it comes before.
    pub(crate) nested: bool,
    /// The positions to keep in a sequence of `len`, ascending; `None`: all.
    pub(crate) wanted: Option<Vec<usize>>,
}

/// A slot that records for a key.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) path: Arc<str>,
    class: &'static str,
    implementation: &'static str,
}

/// A value of a plan: what a position of a sequence would come from.
#[derive(Clone, Debug)]
pub struct PlannedValue<'a> {
    /// Its position in the sequence.
    pub position: usize,
    /// The slot it comes from.
    pub path: &'a str,
    /// The slot's class.
    pub class: &'static str,
    /// The type name of what the slot holds.
    pub implementation: &'static str,
    /// Whether it is the input of the slot's first call rather than an output.
    pub is_input: bool,
    /// Whether it is selected.
    pub is_kept: bool,
}

impl CapturePlan {
    pub(crate) fn new<M: CanRecordOutputs>(
        model: &M,
        asked: &[Asked],
        expected: impl Iterator<Item = (impl AsRef<str>, usize)>,
    ) -> Result<Self, CaptureError> {
        let recorders = M::RECORDERS;
        let OwnSlots { slots, mut originals } = own_slots(model);
        originals.sort_unstable();
        let mut plan = Self { model: M::MODEL, keys: Vec::with_capacity(asked.len()), sinks: Vec::new(), originals };
        for asked in asked {
            plan.add(model, recorders, &slots, asked)?;
        }
        plan.sinks.sort_by_key(|sink| sink.slot); // stable: keys in the order of declaration
        for (key, count) in expected {
            let planned = plan.keys.iter().find(|planned| planned.key == key.as_ref());
            let found = planned.map_or(0, PlannedKey::len);
            // more than there are slots can still come of slots that are called again, which only the run tells
            let is_open = planned.is_some_and(|planned| !planned.counted) && count > found;
            if count != found && !is_open {
                return Err(CaptureError::Count { key: key.as_ref().to_owned(), expected: count, found });
            }
        }
        Ok(plan)
    }

    fn add(
        &mut self,
        model: &dyn Any,
        recorders: &[OutputRecorder],
        slots: &[SlotInfo],
        asked: &Asked,
    ) -> Result<(), CaptureError> {
        let key = asked.key;
        let number = self.keys.len();
        let mut rows = Vec::new();
        let mut first = None;
        for slot in slots {
            let Some(recorder) = recorders
                .iter()
                .find(|recorder| recorder.key == key && recorder.matches(slot) && !claimed(recorder, recorders, slot))
            else {
                continue;
            };
            let element = recorder.element(slot).ok_or_else(|| CaptureError::NoElement {
                key,
                class: slot.class,
                path: slot.path.clone(),
                index: recorder.index,
                arity: slot.arity,
            })?;
            first.get_or_insert(recorder);
            self.sinks.push(Sink { slot: slot.id, key: number, row: rows.len(), element });
            rows.push(Row { path: slot.path.as_str().into(), class: slot.class, implementation: slot.implementation });
        }
        let Some(first) = first else {
            return if asked.follows { Ok(()) } else { Err(self.no_slot(key, recorders, slots)) };
        };
        let initial = key == "hidden_states" && first.capture_initial_hidden_state;
        let declared = recorders
            .iter()
            .filter(|recorder| recorder.key == key)
            .find_map(|recorder| recorder.num_hidden_layers?(model));
        if let Some(count) = declared.filter(|count| *count > MOST) {
            return Err(CaptureError::TooMany { key, count });
        }
        let len = declared.unwrap_or(rows.len()) + usize::from(initial);
        let selection = match &asked.flag {
            Flag::Select(selection) => Some(selection.clone()),
            _ => None,
        };
        let wanted = match selection.as_ref().map(|selection| selection.resolve(len)) {
            None => None,
            Some(Ok(wanted)) => Some(wanted),
            // what only follows selects what it has, and is left out where that is nothing
            Some(Err(_)) if asked.follows => {
                match selection.as_ref().map(|selection| selection.resolve_within(len)).unwrap_or_default() {
                    none if none.is_empty() => {
                        self.sinks.retain(|sink| sink.key != number);
                        return Ok(());
                    }
                    some => Some(some),
                }
            }
            Some(Err(misfit)) => return Err(misfit.of(key, len, declared.is_none() && rows.len() == 1)),
        };
        // slots are met from outside to inside
        let nested = rows.iter().zip(rows.iter().skip(1)).any(|(outer, inner)| is_within(&inner.path, &outer.path));
        self.keys.push(PlannedKey {
            key,
            rows,
            nested,
            initial,
            selection,
            len,
            counted: declared.is_some(),
            follows: asked.follows,
            wanted,
        });
        Ok(())
    }

    fn no_slot(&self, key: &'static str, recorders: &[OutputRecorder], slots: &[SlotInfo]) -> CaptureError {
        let mut present: Vec<&'static str> = slots.iter().map(|slot| slot.class).collect();
        present.sort_unstable();
        present.dedup();
        let own = || recorders.iter().filter(|recorder| recorder.key == key);
        let mut near: Vec<&'static str> =
            own().flat_map(|recorder| near(recorder.target.name(), present.iter().copied())).collect();
        near.retain(|name| own().all(|recorder| recorder.target.name() != *name));
        let targets = own().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        CaptureError::NoSlot { model: self.model, key, targets, present, near }
    }

    /// The plans of the parts of a composite model as one: each with the prefix that its keys get in the composite's
    /// output `O`, as [`pass_on_as`](ModelOutput::pass_on_as) has it, and the path at which the part is.
    ///
    /// To be looked at only: each part follows its own.
    pub fn of_parts<O: ModelOutput>(
        model: &'static str,
        parts: impl IntoIterator<Item = (&'static str, &'static str, Self)>,
    ) -> Self {
        let mut keys = Vec::new();
        for (prefix, path, plan) in parts {
            for mut planned in plan.keys {
                let in_field = |field: &&&str| field.strip_prefix(prefix) == Some(planned.key);
                // a nested output has all of its part's keys
                let is_nested = prefix.ends_with('.');
                let same = || O::KEYS.iter().find(|field| **field == planned.key && !is_nested);
                let field = O::KEYS.iter().find(in_field).or_else(same);
                planned.key = field.copied().unwrap_or_else(|| prefixed(prefix, planned.key));
                for row in &mut planned.rows {
                    row.path = format!("{path}.{}", row.path).into();
                }
                keys.push(planned);
            }
        }
        Self { model, keys, sinks: Vec::new(), originals: Vec::new() }
    }

    /// The keys of the plan, in the order of their declaration.
    pub fn keys(&self) -> &[PlannedKey] {
        &self.keys
    }

    /// The sinks of one slot, as a range of [`sinks`](Self::sinks).
    pub(crate) fn sinks_of(&self, slot: SlotId) -> (usize, usize) {
        let start = self.sinks.partition_point(|sink| sink.slot < slot);
        let len = self.sinks.iter().skip(start).take_while(|sink| sink.slot == slot).count();
        (start, start + len)
    }

    /// The sinks of the slot whose call `slot` is a part of: its own, or for the original of a replacement those of the
    /// replacement, which gives what it gets from it.
    pub(crate) fn sinks_for(&self, slot: SlotId) -> (usize, usize) {
        match self.originals.binary_search_by_key(&slot, |(original, _)| *original) {
            Ok(at) => self.originals.get(at).map_or((0, 0), |(_, replacement)| self.sinks_of(*replacement)),
            Err(_) => self.sinks_of(slot),
        }
    }

    pub(crate) fn sinks(&self, (start, end): (usize, usize)) -> &[Sink] {
        self.sinks.get(start..end).unwrap_or_default()
    }
}

/// A key with a prefix, made once for each pair of the two, of which a program has few.
fn prefixed(prefix: &'static str, key: &'static str) -> &'static str {
    static KNOWN: LazyLock<DashMap<(&'static str, &'static str), &'static str>> = LazyLock::new(DashMap::new);
    if prefix.is_empty() {
        return key;
    }
    *KNOWN.entry((prefix, key)).or_insert_with(|| format!("{prefix}{key}").leak())
}

/// A recorder with `layer_name` takes a slot away from those of other keys that say nothing of where.
fn claimed(recorder: &OutputRecorder, recorders: &[OutputRecorder], slot: &SlotInfo) -> bool {
    recorder.layer_name.is_none()
        && recorders.iter().any(|other| {
            other.key != recorder.key
                && other.layer_name.is_some()
                && other.element(slot) == recorder.element(slot)
                && other.matches(slot)
        })
}

impl Misfit {
    pub(crate) fn of(self, key: &str, len: usize, repeats: bool) -> CaptureError {
        match self {
            Self::OutOfRange(index) => CaptureError::IndexOutOfRange { key: key.to_owned(), index, len, repeats },
            Self::Empty => CaptureError::EmptySelection { key: key.to_owned(), repeats },
        }
    }
}

impl PlannedKey {
    /// The key.
    pub fn key(&self) -> &'static str {
        self.key
    }

    /// How many values there will be, kept or not.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there will be none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the value at `position` is kept, if the sequence has the predicted length. If it turns out longer, a
    /// range without an end goes on.
    pub fn keeps(&self, position: usize) -> bool {
        self.wanted.as_ref().is_none_or(|wanted| wanted.binary_search(&position).is_ok())
            || self.selection.as_ref().is_some_and(|selection| selection.reaches(position))
    }

    /// Whether any value behind `position` is kept.
    pub(crate) fn keeps_after(&self, position: usize) -> bool {
        match (&self.wanted, &self.selection) {
            (Some(wanted), Some(selection)) => {
                selection.is_open() || wanted.last().is_some_and(|last| *last > position)
            }
            _ => true,
        }
    }

    /// What each position would come from, if each slot is called once, in the order of the model's fields.
    pub fn values(&self) -> impl Iterator<Item = PlannedValue<'_>> {
        let shift = usize::from(self.initial);
        let input = self.rows.first().filter(|_| self.initial).map(|row| self.value(row, 0, true));
        input.into_iter().chain(self.rows.iter().enumerate().map(move |(n, row)| self.value(row, n + shift, false)))
    }

    fn value<'a>(&self, row: &'a Row, position: usize, is_input: bool) -> PlannedValue<'a> {
        PlannedValue {
            position,
            path: &row.path,
            class: row.class,
            implementation: row.implementation,
            is_input,
            is_kept: self.keeps(position),
        }
    }

    /// The last position to keep, if it is known before the run whatever the slots do.
    pub(crate) fn last_wanted(&self) -> Option<usize> {
        match &self.selection {
            Some(selection) if selection.tail().is_none() && !selection.is_open() => {
                self.wanted.as_ref()?.last().copied()
            }
            _ => None,
        }
    }
}

impl fmt::Display for CapturePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.model)?;
        for key in &self.keys {
            writeln!(f, "  {} ({} of {})", key.key, key.wanted.as_ref().map_or(key.len, Vec::len), key.len)?;
            for value in key.values().filter(|value| value.is_kept) {
                writeln!(
                    f,
                    "    {:>3}  {}{}  {}",
                    value.position,
                    value.path,
                    if value.is_input { " (input)" } else { "" },
                    value.implementation
                )?;
            }
        }
        Ok(())
    }
}
