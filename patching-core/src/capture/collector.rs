//! What one call records: values on their way from slots to the output.

use super::captured::{Entry, Raw};
use super::element::Value;
use super::error::CaptureError;
use super::kwargs::Keep;
use super::plan::{CapturePlan, PlannedKey, Sink};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) struct Collector {
    pub(crate) plan: CapturePlan,
    keep: Keep,
    /// The run may stop once these keys are complete, that is when each has produced so many values.
    stop_after: Option<Vec<usize>>,
    left: AtomicBool,
    /// Calls may overlap, so that the position of a value is known only when its call ends.
    on_threads: AtomicBool,
    keys: Mutex<Vec<Progress>>,
}

/// How far a key has come.
#[derive(Default)]
struct Progress {
    /// Values produced so far, kept or not.
    produced: usize,
    kept: Vec<Entry<Option<Value>>>,
    /// Once a slot was called again, the predicted length is wrong: the last values, of which some may turn out to
    /// be selected.
    tail: Option<VecDeque<Entry<Option<Value>>>>,
    /// Calls of each slot.
    calls: Vec<usize>,
    initial_missing: Option<Arc<str>>,
}

impl Collector {
    /// `early`: the run may stop when everything is there. A last hidden state that is tied needs the whole run.
    pub(crate) fn new(plan: CapturePlan, keep: Keep, early: bool, tie: bool) -> Self {
        let keys =
            plan.keys().iter().map(|key| Progress { calls: vec![0; key.rows.len()], ..Progress::default() }).collect();
        let stop = |key: &PlannedKey| {
            key.last_wanted()
                .filter(|last| !(tie && key.key == "hidden_states" && *last + 1 >= key.len))
                .map(|last| last + 1)
        };
        let stop_after = if early { plan.keys().iter().map(stop).collect() } else { None };
        Self {
            plan,
            keep,
            stop_after,
            left: AtomicBool::new(false),
            on_threads: AtomicBool::new(false),
            keys: Mutex::new(keys),
        }
    }

    fn keys(&self) -> MutexGuard<'_, Vec<Progress>> {
        // a panic in one layer must not hide its own message behind a poisoned lock
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From here on calls may run at the same time.
    pub(crate) fn enter_thread(&self) {
        self.on_threads.store(true, Ordering::Relaxed);
    }

    /// Whether the value of `key` that the call beginning now gives may be kept.
    pub(crate) fn wants_next(&self, key: usize) -> bool {
        let keys = self.keys();
        match (self.plan.keys().get(key), keys.get(key)) {
            (Some(planned), Some(progress)) => {
                // the input that comes first is taken when the first call begins, so it is already counted
                let next = progress.produced;
                let overlaps = planned.nested || self.on_threads.load(Ordering::Relaxed);
                planned.keeps(next) || progress.tail.is_some() || (overlaps && planned.keeps_after(next))
            }
            _ => false,
        }
    }

    pub(crate) fn input(&self, sink: &Sink, value: &impl Fn(Keep) -> Option<Value>) {
        let mut keys = self.keys();
        let (Some(planned), Some(progress)) = (self.plan.keys().get(sink.key), keys.get_mut(sink.key)) else { return };
        let Some(row) = planned.rows.get(sink.row) else { return };
        if planned.initial && progress.produced == 0 {
            if planned.keeps(0) {
                match value(self.keep) {
                    Some(value) => progress.kept.push(Entry {
                        position: 0,
                        path: format!("{} (input)", row.path).into(),
                        value: Some(value),
                    }),
                    None => progress.initial_missing = Some(row.path.clone()),
                }
            }
            progress.produced = 1;
        }
        // decided before the call: whether it gives attention weights depends on it
        if let Some(calls) = progress.calls.get_mut(sink.row) {
            *calls += 1;
            if *calls > 1
                && !planned.counted
                && progress.tail.is_none()
                && planned.selection.as_ref().is_some_and(|selection| selection.tail().is_some())
            {
                progress.tail = Some(VecDeque::new());
            }
        }
    }

    pub(crate) fn output(&self, sink: &Sink, value: impl FnOnce(Keep) -> Option<Value>) {
        let mut keys = self.keys();
        let (Some(planned), Some(progress)) = (self.plan.keys().get(sink.key), keys.get_mut(sink.key)) else { return };
        let Some(row) = planned.rows.get(sink.row) else { return };
        let position = progress.produced;
        progress.produced += 1;
        if planned.keeps(position) {
            progress.kept.push(Entry { position, path: row.path.clone(), value: value(self.keep) });
        } else if let Some(tail) = &mut progress.tail {
            let most = planned.selection.as_ref().and_then(|selection| selection.tail()).unwrap_or(0);
            if tail.len() >= most {
                tail.pop_front();
            }
            tail.push_back(Entry { position, path: row.path.clone(), value: value(self.keep) });
        }
    }

    /// Whether the run has everything it wants and may stop here.
    pub(crate) fn leave(&self) -> bool {
        let Some(stop_after) = &self.stop_after else { return false };
        let keys = self.keys();
        let complete = keys.iter().zip(stop_after).all(|(progress, enough)| progress.produced >= *enough);
        if complete {
            self.left.store(true, Ordering::Relaxed);
        }
        complete
    }

    /// Whether the run stopped because it had everything.
    pub(crate) fn has_left(&self) -> bool {
        self.left.load(Ordering::Relaxed)
    }

    /// The recorded values of every key, each at its position; an error if one that was asked for is not there.
    pub(crate) fn finish(&self) -> Result<BTreeMap<&'static str, Raw>, CaptureError> {
        let progress = std::mem::take(&mut *self.keys());
        let mut values = BTreeMap::new();
        for (planned, progress) in self.plan.keys().iter().zip(progress) {
            if let Some(raw) = self.finish_key(planned, progress)? {
                values.insert(planned.key, raw);
            }
        }
        Ok(values)
    }

    fn finish_key(&self, planned: &PlannedKey, progress: Progress) -> Result<Option<Raw>, CaptureError> {
        let key = planned.key;
        if planned.follows && progress.produced == 0 {
            return Ok(None); // nobody named it, and this run does without
        }
        if let Some(path) = progress.initial_missing {
            return Err(CaptureError::InitialNotTensor { key, path: path.to_string() });
        }
        let stopped = self.has_left();
        // a run that stopped had what it wanted; its length is the predicted one
        let len = if stopped { planned.len } else { progress.produced };
        let silent = planned.rows.iter().zip(&progress.calls).position(|(_, calls)| *calls == 0);
        if let Some(row) = silent.and_then(|at| planned.rows.get(at).map(|row| (at, row))).filter(|_| !stopped) {
            // a selection of positions before it does not depend on it
            let shift = usize::from(planned.initial);
            if planned.last_wanted().is_none_or(|last| row.0 + shift <= last) {
                return Err(CaptureError::NotFired { key, path: row.1.path.to_string() });
            }
        }
        if planned.counted && !stopped && progress.produced != planned.len {
            return Err(CaptureError::Count { key: key.to_owned(), expected: planned.len, found: progress.produced });
        }
        let wanted = match (&planned.selection, len == planned.len) {
            (Some(selection), false) if planned.follows => Some(selection.resolve_within(len)),
            (Some(selection), false) => Some(selection.resolve(len).map_err(|misfit| misfit.of(key, len, false))?),
            _ => planned.wanted.clone(),
        };
        let mut entries: Vec<_> = progress.kept.into_iter().chain(progress.tail.into_iter().flatten()).collect();
        entries.sort_by_key(|entry| entry.position);
        if let Some(wanted) = &wanted {
            entries.retain(|entry| wanted.binary_search(&entry.position).is_ok());
            if let Some(position) =
                wanted.iter().find(|position| entries.binary_search_by_key(*position, |entry| entry.position).is_err())
            {
                let (at, calls) =
                    progress.calls.iter().copied().enumerate().max_by_key(|(_, calls)| *calls).unwrap_or((0, 0));
                let path = planned.rows.get(at).map_or_else(String::new, |row| row.path.to_string());
                return Err(if calls > 1 {
                    CaptureError::Repeated { key, path, calls, position: *position }
                } else {
                    CaptureError::NotFired { key, path }
                });
            }
        }
        let entries = entries
            .into_iter()
            .map(|Entry { position, path, value }| match value {
                Some(value) => Ok(Entry { position, path, value }),
                None => Err(CaptureError::NotGiven { key, path: path.to_string() }),
            })
            .collect::<Result<_, _>>()?;
        Ok(Some(Raw { len, entries, origin: None }))
    }
}
