//! Running the tool, and reading what it was tested against.

use safetensors::{Dtype, SafeTensors};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// How far a value may be from the reference's.
pub(crate) const TOLERANCE: f32 = 1e-4;

/// The backends that were built in.
pub(crate) const BACKENDS: &[&str] = &[
    #[cfg(feature = "flex")]
    "flex",
    #[cfg(feature = "ndarray")]
    "ndarray",
];

/// The built program.
pub(crate) fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_burnlens"))
}

/// Runs the tool.
pub(crate) fn run<S: AsRef<std::ffi::OsStr>>(args: &[S]) -> Output {
    command().args(args).output().expect("the tool can be started")
}

/// Runs the tool, which must succeed; gives its standard output.
#[track_caller]
pub(crate) fn succeed<S: AsRef<std::ffi::OsStr>>(args: &[S]) -> String {
    let output = run(args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).expect("the tool writes UTF-8")
}

/// Runs the tool, which must fail with `status`; gives its standard error.
#[track_caller]
pub(crate) fn fail<S: AsRef<std::ffi::OsStr>>(status: i32, args: &[S]) -> String {
    let output = run(args);
    let errors = String::from_utf8(output.stderr).expect("the tool writes UTF-8");
    assert_eq!(output.status.code(), Some(status), "{errors}");
    assert!(output.stdout.is_empty(), "errors do not go to standard output");
    errors
}

/// A tensor of a file.
#[derive(Debug, PartialEq)]
pub(crate) struct Stored {
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: Vec<u8>,
}

impl Stored {
    pub(crate) fn floats(&self) -> Vec<f32> {
        assert_eq!(self.dtype, Dtype::F32);
        self.bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
    }

    pub(crate) fn ints(&self) -> Vec<i64> {
        assert_eq!(self.dtype, Dtype::I64);
        self.bytes.chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().expect("eight bytes"))).collect()
    }
}

/// All tensors of a safetensors file.
pub(crate) fn tensors(path: &Path) -> BTreeMap<String, Stored> {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file = SafeTensors::deserialize(&bytes).expect("a valid file");
    let stored = |view: safetensors::tensor::TensorView<'_>| Stored {
        dtype: view.dtype(),
        shape: view.shape().to_vec(),
        bytes: view.data().to_vec(),
    };
    file.tensors().into_iter().map(|(name, view)| (name, stored(view))).collect()
}

/// All tensors of a checkpoint, whatever files they are in.
pub(crate) fn checkpoint(folder: &Path) -> BTreeMap<String, Stored> {
    let files = std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path());
    let weights = files.filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("model") && name.ends_with(".safetensors")
    });
    weights.flat_map(|path| tensors(&path)).collect()
}

pub(crate) fn json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

/// The same keys, shapes and types; floats within the tolerance, integers equal.
#[track_caller]
pub(crate) fn assert_alike(what: &str, found: &BTreeMap<String, Stored>, expected: &BTreeMap<String, Stored>) {
    let keys = |of: &BTreeMap<String, Stored>| of.keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(found), keys(expected), "{what}");
    for (key, expected) in expected {
        let found = &found[key];
        assert_eq!((found.dtype, &found.shape), (expected.dtype, &expected.shape), "{what}: {key}");
        if expected.dtype != Dtype::F32 {
            assert_eq!(found.bytes, expected.bytes, "{what}: {key}");
            continue;
        }
        for (at, (one, other)) in found.floats().iter().zip(expected.floats()).enumerate() {
            let bound = TOLERANCE * (1.0 + other.abs());
            assert!((one - other).abs() <= bound, "{what}: {key}: element {at} is {one}, expected {other}");
        }
    }
}

/// A folder of what the reference returned.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) meta: Value,
    /// Keeps the folder that `model` makes.
    assembled: Option<tempfile::TempDir>,
    /// The checkpoint with all experts of a layer in one tensor, where there is one.
    fused: Option<PathBuf>,
}

impl Case {
    /// Every way in which the reference was run.
    pub(crate) fn all() -> Vec<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("burn-models/tests/fixtures");
        let folders = std::fs::read_dir(root).expect("there are fixtures").map(|entry| entry.expect("readable").path());
        let has = |folder: &PathBuf, name: &str| folder.join(name).exists();
        let mut folders: Vec<PathBuf> = folders
            .filter(|folder| {
                has(folder, "meta.json") && has(folder, "outputs.safetensors") && has(folder, "config.json")
            })
            .collect();
        folders.sort();
        folders.iter().map(|folder| Self::new(&folder.file_name().expect("a name").to_string_lossy())).collect()
    }

    pub(crate) fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("burn-models/tests/fixtures").join(name);
        let meta = json(&folder.join("meta.json"));
        let has_weights = folder.join("model.safetensors").exists();
        // Cases that differ only in how they are run share the weights of `llama`.
        let assembled = (!has_weights).then(|| {
            let assembled = tempfile::tempdir().expect("a folder");
            let copy = |from: PathBuf| {
                let to = assembled.path().join(from.file_name().expect("a file"));
                std::fs::copy(&from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
            };
            copy(folder.join("config.json"));
            copy(folder.with_file_name("llama").join("model.safetensors"));
            assembled
        });
        let fused = Some(folder.join("fused")).filter(|fused| fused.exists());
        Self { name: name.to_owned(), folder, meta, assembled, fused }
    }

    /// A folder with config and weights.
    pub(crate) fn model(&self) -> &Path {
        match (&self.assembled, &self.fused) {
            (Some(assembled), _) => assembled.path(),
            (None, Some(fused)) => fused,
            (None, None) => &self.folder,
        }
    }

    pub(crate) fn inputs(&self) -> PathBuf {
        let own = self.folder.join("inputs.safetensors");
        if own.exists() { own } else { self.folder.with_file_name("llama").join("inputs.safetensors") }
    }

    /// `capture` with the model and the inputs of this case, and the flags that the reference was called with.
    pub(crate) fn capture(&self) -> Vec<String> {
        let mut args = vec!["capture".to_owned()];
        args.extend(["--model".to_owned(), self.model().display().to_string()]);
        args.extend(["--inputs".to_owned(), self.inputs().display().to_string()]);
        for (name, value) in self.meta["flags"].as_object().expect("flags") {
            match name.strip_prefix("output_") {
                Some(key) => args.extend(["--output".to_owned(), output(key, value)]),
                None => args.extend(["--use-cache".to_owned(), value.to_string()]),
            }
        }
        args
    }
}

/// A flag of the reference as an argument of `--output`.
fn output(key: &str, value: &Value) -> String {
    match value {
        Value::Bool(true) => key.to_owned(),
        Value::Array(indices) => {
            let indices: Vec<String> = indices.iter().map(ToString::to_string).collect();
            format!("{key}={}", indices.join(","))
        }
        other => format!("{key}={other}"),
    }
}
