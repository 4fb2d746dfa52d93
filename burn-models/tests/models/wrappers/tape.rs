//! What wrapped classes gave in one run, to be written back in another.

use std::any::Any;
use std::cell::RefCell;
use std::collections::VecDeque;

enum Tape {
    Off,
    Recording(VecDeque<Box<dyn Any>>),
    Playing(VecDeque<Box<dyn Any>>),
}

thread_local! {
    static TAPE: RefCell<Tape> = const { RefCell::new(Tape::Off) };
}

/// What a wrapped class gives: `value`, or in a run that plays what it gave at this call of an earlier run.
pub fn written_back<T: Clone + 'static>(value: T) -> T {
    TAPE.with_borrow_mut(|tape| match tape {
        Tape::Off => value,
        Tape::Recording(values) => {
            values.push_back(Box::new(value.clone()));
            value
        }
        Tape::Playing(values) => {
            let earlier = values.pop_front().expect("as many calls as before");
            *earlier.downcast::<T>().expect("in the same order")
        }
    })
}

/// Runs `body` twice: once as it is, and once with everything that wrapped classes gave written back; gives both results
/// and how many values were written.
pub fn twice<R>(mut body: impl FnMut() -> R) -> (R, R, usize) {
    TAPE.set(Tape::Recording(VecDeque::new()));
    let first = body();
    let Tape::Recording(values) = TAPE.replace(Tape::Off) else { unreachable!("it was recording") };
    let count = values.len();
    TAPE.set(Tape::Playing(values));
    let second = body();
    let Tape::Playing(left) = TAPE.replace(Tape::Off) else { unreachable!("it was playing") };
    assert!(left.is_empty(), "{} values were not asked for", left.len());
    (first, second, count)
}
