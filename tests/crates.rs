//! The macros in crates that know the runtime by other names.

use std::path::Path;
use std::process::Command;

#[test]
fn the_macros_find_the_runtime_under_every_name() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = root.join("tests/crates");
    // the same versions as here, so that what is built can be used again
    std::fs::copy(root.join("Cargo.lock"), crates.join("Cargo.lock")).expect("the lock file can be copied");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target directory");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--workspace", "--offline", "--quiet"])
        .current_dir(&crates)
        .env("CARGO_TARGET_DIR", target)
        .env_remove("RUSTFLAGS")
        .status()
        .expect("cargo runs");
    assert!(status.success(), "a crate in `tests/crates` does not build");
}
