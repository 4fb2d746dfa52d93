//! Crates of users: the macros under other names of the runtime, and a replacement for a class of the library.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Copies the folder `from`; manifests, which name this package by relative paths, get its path `root`.
fn copy(from: &Path, to: &Path, root: &str) {
    fs::create_dir_all(to).expect("a folder");
    for file in fs::read_dir(from).expect("a folder") {
        let path = file.expect("a file").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.ends_with("target") {
            // of a build by hand
        } else if path.is_dir() {
            copy(&path, &target, root);
        } else if path.ends_with("Cargo.toml") {
            let manifest = fs::read_to_string(&path).expect("a manifest");
            fs::write(&target, manifest.replace("\"../../..", &format!("\"{root}"))).expect("written");
        } else {
            fs::copy(&path, &target).expect("copied");
        }
    }
}

#[test]
fn crates_of_users_build_and_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Always the same folder, so that what is built can be used again; not the sources' own, which stay as they are.
    let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let crates = temporary.join("crates");
    copy(&root.join("tests/crates"), &crates, &root.display().to_string().replace('\\', "/"));
    // the same versions as here
    fs::copy(root.join("Cargo.lock"), crates.join("Cargo.lock")).expect("the lock file can be copied");
    let target = temporary.parent().expect("the target directory");
    let cargo = |arguments: &[&str]| {
        Command::new(env!("CARGO"))
            .args(arguments)
            .current_dir(&crates)
            .env("CARGO_TARGET_DIR", target)
            .env_remove("RUSTFLAGS")
            .status()
            .expect("cargo runs")
    };
    let built = cargo(&["build", "--workspace", "--offline", "--quiet"]);
    assert!(built.success(), "a crate in `tests/crates` does not build");
    let model = root.join("models/tiny-decoder");
    let ran = cargo(&["run", "--offline", "--quiet", "-p", "replacing", "--", &model.display().to_string()]);
    assert!(ran.success(), "a user's replacement is not recorded");
}
