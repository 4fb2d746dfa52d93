//! The examples run, and what they assert holds.
#![allow(clippy::print_stdout, dead_code, reason = "each example is a program of its own, and shows what it does")]

use std::error::Error;
use std::sync::{Mutex, PoisonError};

macro_rules! examples {
    ($($(#[$condition:meta])* $name:ident: $path:literal),* $(,)?) => {$(
        $(#[$condition])*
        #[path = $path]
        mod $name;

        $(#[$condition])*
        #[test]
        fn $name() {
            alone($name::main);
        }
    )*};
}

/// Some examples register patches and conversions, which hold for the whole program.
fn alone(run: fn() -> Result<(), Box<dyn Error>>) {
    static LOCK: Mutex<()> = Mutex::new(());
    let _guard = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(error) = run() {
        panic!("{error}");
    }
}

examples! {
    #[cfg(feature = "text")] embed_and_rank: "../examples/embed_and_rank.rs",
    fused_qwen2_moe: "../examples/fused_qwen2_moe.rs",
    int8_mlp: "../examples/int8_mlp.rs",
    patched_model: "../examples/patched_model.rs",
    replaced_attention: "../examples/replaced_attention.rs",
    #[cfg(feature = "autodiff")] routing_replay: "../examples/routing_replay.rs",
    #[cfg(feature = "text")] transcribe: "../examples/transcribe.rs",
}
