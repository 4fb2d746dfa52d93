//! What a call through a slot adds while nothing is recorded, against a call of the same function that is not inlined.
//!
//! `cargo run --release -p patching-core --example slot_cost`

use burn::module::Module;
use burn::tensor::Device;
use patching_core::capture::{Element, Keep};
use patching_core::prelude::*;
use std::hint::black_box;
use std::time::Instant;

/// A value that costs nothing to pass, so that only the call is measured.
#[derive(Clone, Copy, Debug)]
struct Number(f64);

impl Element for Number {
    type Value = Self;
    fn value(&self, _: Keep) -> Option<Self> {
        Some(*self)
    }
}

#[derive(Module, Debug)]
struct Next {
    step: f64,
}

#[module_class]
impl Next {
    fn new(_init: &Init) -> Self {
        Self { step: 1.0 }
    }
    #[inline(never)]
    fn forward(&self, number: Number) -> Number {
        Number(number.0 + self.step)
    }
}

const CALLS: u32 = 50_000_000;

/// The best of some rounds: what else the machine does only adds.
fn nanoseconds(mut call: impl FnMut()) -> f64 {
    let mut round = || {
        let start = Instant::now();
        for _ in 0..CALLS {
            call();
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
    };
    (0..9).map(|_| round()).fold(f64::INFINITY, f64::min)
}

#[allow(clippy::print_stdout, reason = "it reports a measurement")]
fn main() {
    let init = Init::new(&Device::flex());
    let (bare, slot) = (Next::new(&init), Next::slot(&init));
    let direct = nanoseconds(|| {
        black_box(black_box(&bare).forward(Number(1.0)));
    });
    let through = nanoseconds(|| {
        black_box(black_box(&slot).forward(Number(1.0)));
    });
    println!("direct call {direct:.2} ns, through a slot {through:.2} ns, added {:.2} ns", through - direct);
}
