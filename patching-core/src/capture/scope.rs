//! The state of one call: it lives on the thread's stack of scopes and closes with the call.

use super::collector::Collector;
use super::element::{ModuleOutput, Value};
use super::kwargs::Keep;
use super::selection;
use crate::class::{ModuleClass, SlotId};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

thread_local! {
    /// The innermost base model records. The only thing that a slot's call looks at when nothing is asked for.
    static RECORDING: Cell<bool> = const { Cell::new(false) };
    static TOP: RefCell<Option<Arc<Collector>>> = const { RefCell::new(None) };
    /// The slot being called: a range of the plan's sinks, and how many elements it returns.
    static CURRENT: Cell<Current> = const { Cell::new(Current::NONE) };
}

#[derive(Clone, Copy)]
struct Current {
    sinks: (usize, usize),
    arity: usize,
}

impl Current {
    const NONE: Self = Self { sinks: (0, 0), arity: 0 };
}

/// Makes `collector` the innermost of this thread until dropped, also by a panic.
pub(crate) struct Open {
    collector: Option<Arc<Collector>>,
    current: Current,
}

impl Open {
    pub(crate) fn new(collector: Option<Arc<Collector>>) -> Self {
        RECORDING.set(collector.is_some());
        Self { collector: TOP.replace(collector), current: CURRENT.replace(Current::NONE) }
    }

    /// Hides the outer model's recorder, if there is one, from a base model that records nothing.
    #[inline]
    pub(crate) fn blind() -> Option<Self> {
        if RECORDING.get() { Some(Self::new(None)) } else { None }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let collector = self.collector.take();
        RECORDING.set(collector.is_some());
        CURRENT.set(self.current);
        TOP.replace(collector);
    }
}

/// What is being recorded on this thread, to be carried into a worker thread that a `forward` starts.
///
/// ```
/// use patching_core::capture::Scope;
/// let scope = Scope::current();
/// std::thread::scope(|threads| {
///     threads.spawn(|| scope.enter(|| { /* call layers here */ }));
/// });
/// ```
#[derive(Clone)]
pub struct Scope(Option<Arc<Collector>>);

impl Scope {
    /// What this thread records into.
    pub fn current() -> Self {
        Self(TOP.with_borrow(Clone::clone))
    }

    /// Runs `work` on this thread with the calls in it recorded. Values are ordered as the calls end.
    pub fn enter<T>(&self, work: impl FnOnce() -> T) -> T {
        if let Some(collector) = &self.0 {
            collector.enter_thread();
        }
        let _open = Open::new(self.0.clone());
        work()
    }
}

/// Whether element `index` of what the slot being called returns is recorded in this call; a negative `index`
/// counts from the end.
///
/// Inside `forward` of a module class it tells what need not be computed otherwise, such as attention weights.
/// Outside of a slot's call it is false.
pub fn is_wanted(index: isize) -> bool {
    if !RECORDING.get() {
        return false;
    }
    let current = CURRENT.get();
    let Some(element) = selection::position(index, current.arity) else { return false };
    TOP.with_borrow(|top| {
        top.as_ref().is_some_and(|collector| {
            collector
                .plan
                .sinks(current.sinks)
                .iter()
                .any(|sink| sink.element == element && collector.wants_next(sink.key))
        })
    })
}

/// Whether a run that may stop early has everything it wants.
#[doc(hidden)]
#[inline]
pub fn is_complete() -> bool {
    RECORDING.get() && TOP.with_borrow(|top| top.as_ref().is_some_and(|collector| collector.leave()))
}

/// A call of a slot while something is recorded.
#[doc(hidden)]
pub struct Call {
    collector: Arc<Collector>,
    sinks: (usize, usize),
    before: Current,
}

/// What every slot does first. `None`: nothing is recorded.
#[doc(hidden)]
#[inline(always)]
pub fn enter<C: ModuleClass>(hooked: &C::Interface) -> Option<Call> {
    if RECORDING.get() { enter_recorded(SlotId::of(hooked), C::Output::ARITY) } else { None }
}

#[cold]
fn enter_recorded(slot: SlotId, arity: usize) -> Option<Call> {
    let collector = TOP.with_borrow(Clone::clone)?;
    let sinks = collector.plan.sinks_of(slot);
    // also where nothing is planned: what this slot calls must not take itself for its caller
    let before = CURRENT.replace(Current { sinks: collector.plan.sinks_for(slot), arity });
    Some(Call { collector, sinks, before })
}

impl Call {
    /// Before the call: its first argument.
    #[cold]
    pub fn input(&self, value: impl Fn(Keep) -> Option<Value>) {
        for sink in self.collector.plan.sinks(self.sinks) {
            self.collector.input(sink, &value);
        }
    }

    /// After the call: what it returned.
    #[cold]
    pub fn output<C: ModuleClass>(&self, output: &C::Output) {
        for sink in self.collector.plan.sinks(self.sinks) {
            self.collector.output(sink, |keep| output.element(sink.element, keep));
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}
