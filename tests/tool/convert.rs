use crate::support::{Case, checkpoint, fail, json, succeed};
use safetensors::Dtype;
use serde_json::Value;
use std::path::Path;

fn convert(from: &Path, to: &Path, more: &[&str]) -> String {
    let (from, to) = (from.display().to_string(), to.display().to_string());
    let mut args = vec!["convert", "--model", &from, "--to", &to];
    args.extend(more);
    succeed(&args)
}

/// A config in which `8` and `8.0` are the same.
fn normalised(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map_or(Value::Number(number), Value::from),
        Value::Array(values) => values.into_iter().map(normalised).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, normalised(value))).collect(),
        other => other,
    }
}

#[test]
fn without_options_nothing_changes() {
    for name in ["llama", "llama-base", "llama-tied", "llama3-rope", "mistral", "qwen2", "qwen3"] {
        let case = Case::new(name);
        let folder = tempfile::tempdir().expect("a folder");
        convert(case.model(), folder.path(), &[]);
        assert_eq!(checkpoint(folder.path()), checkpoint(case.model()), "{name}");
        let config = |of: &Path| normalised(json(&of.join("config.json")));
        let (found, expected) = (config(folder.path()), config(case.model()));
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn files_of_a_given_size() {
    let case = Case::new("llama");
    let folder = tempfile::tempdir().expect("a folder");
    let text = convert(case.model(), folder.path(), &["--max-shard-size", "40KB"]);
    assert!(text.contains("model-00001-of-"), "{text}");
    assert!(!folder.path().join("model.safetensors").exists());
    let index = json(&folder.path().join("model.safetensors.index.json"));
    assert_eq!(index["weight_map"].as_object().map(serde_json::Map::len), Some(checkpoint(case.model()).len()));
    assert_eq!(checkpoint(folder.path()), checkpoint(case.model()));

    // and back to one file, in a folder that has the shards
    let one = tempfile::tempdir().expect("a folder");
    convert(folder.path(), one.path(), &[]);
    assert_eq!(checkpoint(one.path()), checkpoint(case.model()));
}

#[test]
fn what_is_not_converted_has_one_layout() {
    let case = Case::new("llama");
    for layout in ["original", "model"] {
        let folder = tempfile::tempdir().expect("a folder");
        convert(case.model(), folder.path(), &["--layout", layout]);
        assert_eq!(checkpoint(folder.path()), checkpoint(case.model()), "{layout}");
    }
}

#[test]
fn experts_have_two_layouts() {
    for name in ["qwen2_moe", "mixtral"] {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("burn-models/tests/fixtures").join(name);
        let (single, fused) = (checkpoint(&fixtures), checkpoint(&fixtures.join("fused")));
        for (from, layout, expected) in [
            (".", "original", &single),
            (".", "published", &single),
            (".", "model", &fused),
            ("fused", "original", &fused),
            ("fused", "published", &single),
            ("fused", "model", &fused),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            convert(&fixtures.join(from), folder.path(), &["--layout", layout]);
            assert_eq!(&checkpoint(folder.path()), expected, "{name}: {from} to {layout}");
        }
    }
}

#[test]
fn another_element_type() {
    let case = Case::new("llama");
    let folder = tempfile::tempdir().expect("a folder");
    convert(case.model(), folder.path(), &["--dtype", "bf16"]);
    assert!(checkpoint(folder.path()).values().all(|tensor| tensor.dtype == Dtype::BF16));
    assert_eq!(json(&folder.path().join("config.json"))["dtype"], "bfloat16");
    let wide = tempfile::tempdir().expect("a folder");
    convert(folder.path(), wide.path(), &["--dtype", "f32"]);
    let again = tempfile::tempdir().expect("a folder");
    convert(wide.path(), again.path(), &["--dtype", "bf16"]);
    assert_eq!(checkpoint(again.path()), checkpoint(folder.path()), "no bit is lost on the way back");
}

#[test]
fn other_files_come_along() {
    let case = Case::new("llama");
    let from = tempfile::tempdir().expect("a folder");
    convert(case.model(), from.path(), &[]);
    std::fs::write(from.path().join("tokenizer.json"), "{}").expect("written");
    let to = tempfile::tempdir().expect("a folder");
    convert(from.path(), to.path(), &[]);
    for file in ["generation_config.json", "tokenizer.json"] {
        let read = |folder: &Path| std::fs::read(folder.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!(read(to.path()), read(from.path()), "{file}");
    }
}

#[test]
fn other_files_that_are_there_are_kept_and_told() {
    let case = Case::new("llama");
    let from = tempfile::tempdir().expect("a folder");
    convert(case.model(), from.path(), &[]);
    std::fs::write(from.path().join("tokenizer.json"), "{}").expect("written");
    let to = tempfile::tempdir().expect("a folder");
    std::fs::write(to.path().join("tokenizer.json"), "{ }").expect("written");
    std::fs::write(to.path().join("README.md"), "mine").expect("written");
    let paths = [from.path().display().to_string(), to.path().display().to_string()];
    let output = crate::support::run(&["convert", "--model", &paths[0], "--to", &paths[1]]);
    assert!(output.status.success());
    let warnings = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = warnings.lines().collect();
    assert_eq!(lines.len(), 1, "{warnings}");
    assert!(lines[0].contains("tokenizer.json` was there before and was kept"), "{warnings}");
    assert_eq!(std::fs::read_to_string(to.path().join("tokenizer.json")).expect("kept"), "{ }");
}

#[test]
fn a_head_left_out_is_told() {
    let case = Case::new("llama");
    let folder = tempfile::tempdir().expect("a folder");
    let output = crate::support::run(&[
        "convert",
        "--model",
        &case.model().display().to_string(),
        "--task",
        "base",
        "--to",
        &folder.path().display().to_string(),
    ]);
    assert!(output.status.success());
    let warnings = String::from_utf8_lossy(&output.stderr);
    assert!(warnings.contains("no place for `lm_head.weight`"), "{warnings}");
    assert_eq!(json(&folder.path().join("config.json"))["architectures"][0], "LlamaModel");
}

#[test]
fn a_checkpoint_is_not_written_over_itself() {
    let case = Case::new("llama");
    let folder = tempfile::tempdir().expect("a folder");
    convert(case.model(), folder.path(), &[]);
    let path = folder.path().display().to_string();
    let error = fail(1, &["convert", "--model", &path, "--to", &path]);
    assert!(error.contains("choose another"), "{error}");
}
