//! What a call through a slot costs while nothing is recorded, against the same call without a slot.
//!
//! `cargo run --release -p patching-core --example slot_cost`

use burn::module::Module;
use burn::tensor::Device;
use patching_core::prelude::*;
use std::hint::black_box;
use std::time::Instant;

#[derive(Module, Debug)]
struct Next;

#[module_class]
impl Next {
    fn new(_init: &Init) -> Self {
        Self
    }
    #[inline(never)]
    fn forward(&self, number: Option<burn::Tensor<1>>) -> Option<burn::Tensor<1>> {
        black_box(number)
    }
}

fn nanoseconds(mut call: impl FnMut()) -> f64 {
    const CALLS: u32 = 10_000_000;
    let run = |call: &mut dyn FnMut()| {
        let start = Instant::now();
        call();
        start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
    };
    let mut rounds = || {
        for _ in 0..CALLS {
            call();
        }
    };
    let mut times: Vec<f64> = (0..15).map(|_| run(&mut rounds)).collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

#[allow(clippy::print_stdout, reason = "it reports a measurement")]
fn main() {
    let init = Init::new(&Device::flex());
    let (bare, slot) = (Next::new(&init), Next::slot(&init));
    let direct = nanoseconds(|| {
        black_box(black_box(&bare).forward(None));
    });
    let through = nanoseconds(|| {
        black_box(black_box(&slot).forward(None));
    });
    println!("direct call {direct:.2} ns, through a slot {through:.2} ns, difference {:.2} ns", through - direct);
}
