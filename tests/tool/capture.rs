use crate::support::{BACKENDS, Case, assert_alike, command, json, run, succeed, tensors};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::Value;
use std::io::Read;
use std::process::Stdio;

/// Runs a case and compares the saved outputs and the saved order with the reference's.
fn check(case: &Case, more: &[&str], tuple_order: &Value, entries: &Value) {
    let folder = tempfile::tempdir().expect("a folder");
    let (save, meta) = (folder.path().join("outputs.safetensors"), folder.path().join("meta.json"));
    let mut args = case.capture();
    args.extend(["--save".to_owned(), save.display().to_string(), "--meta".to_owned(), meta.display().to_string()]);
    args.extend(more.iter().map(|arg| (*arg).to_owned()));
    succeed(&args);
    assert_alike(&case.name, &tensors(&save), &tensors(&case.folder.join("outputs.safetensors")));
    let meta = json(&meta);
    // what nothing in the model records is an empty tuple in the reference, and left out here
    let is_empty = |key: &Value| key.as_str().is_some_and(|key| entries[key]["length"] == 0);
    let order: Vec<&Value> = tuple_order.as_array().expect("a list").iter().filter(|key| !is_empty(key)).collect();
    assert_eq!(meta["tuple_order"].as_array().expect("a list").iter().collect::<Vec<_>>(), order, "{}", case.name);
    let mut entries = entries.as_object().expect("an object").clone();
    entries.retain(|_, entry| entry["length"] != 0);
    assert_eq!(meta["entries"].as_object(), Some(&entries), "{}", case.name);
}

#[test]
fn outputs_and_their_order_are_the_reference_s() {
    for case in Case::all() {
        for backend in BACKENDS {
            for attention in ["sdpa", "eager"] {
                let more = ["--backend", backend, "--attn-implementation", attention];
                check(&case, &more, &case.meta["tuple_order"], &case.meta["entries"]);
            }
        }
    }
}

#[test]
fn a_cache_has_its_place_in_the_order() {
    let case = Case::new("llama");
    let folder = tempfile::tempdir().expect("a folder");
    let meta = folder.path().join("meta.json").display().to_string();
    let mut args: Vec<String> = case.capture();
    args.retain(|arg| arg != "--use-cache" && arg != "false");
    args.extend(["--use-cache".to_owned(), "true".to_owned(), "--meta".to_owned(), meta.clone()]);
    succeed(&args);
    assert_eq!(json(meta.as_ref())["tuple_order"], case.meta["tuple_order_with_cache"]);
}

#[test]
fn the_base_model_of_a_head() {
    let case = Case::new("llama");
    for task in ["base", "LlamaModel"] {
        let folder = tempfile::tempdir().expect("a folder");
        let (save, meta) = (folder.path().join("o.safetensors"), folder.path().join("meta.json"));
        let mut args = case.capture();
        for (name, value) in [("--task", task), ("--save", &save.display().to_string())] {
            args.extend([name.to_owned(), value.to_owned()]);
        }
        args.extend(["--meta".to_owned(), meta.display().to_string()]);
        succeed(&args);
        let (found, mut expected) = (tensors(&save), tensors(&case.folder.join("outputs.safetensors")));
        assert_eq!(found["last_hidden_state"].bytes, found["hidden_states.3"].bytes, "tied");
        expected.remove("logits");
        let mut recorded = found;
        recorded.remove("last_hidden_state");
        assert_alike(task, &recorded, &expected);
        assert_eq!(json(&meta)["tuple_order"], case.meta["base_model"]["tuple_order"]);
    }
}

#[test]
fn integers_of_any_width_are_inputs() {
    let case = Case::new("llama");
    let folder = tempfile::tempdir().expect("a folder");
    let wide = tensors(&case.inputs());
    let narrow: Vec<(String, Vec<usize>, Vec<u8>)> = wide
        .iter()
        .map(|(name, tensor)| {
            let bytes = tensor.ints().iter().flat_map(|value| (*value as i16).to_le_bytes()).collect();
            (name.clone(), tensor.shape.clone(), bytes)
        })
        .collect();
    let views = narrow
        .iter()
        .map(|(name, shape, bytes)| (name, TensorView::new(Dtype::I16, shape.clone(), bytes).expect("a tensor")));
    let inputs = folder.path().join("inputs.safetensors");
    safetensors::serialize_to_file(views, None, &inputs).expect("written");

    let save = folder.path().join("o.safetensors");
    let mut args = case.capture();
    let given = args.iter().position(|arg| arg == "--inputs").expect("has inputs");
    args[given + 1] = inputs.display().to_string();
    args.extend(["--save".to_owned(), save.display().to_string()]);
    succeed(&args);
    assert_alike("i16", &tensors(&save), &tensors(&case.folder.join("outputs.safetensors")));
}

#[test]
fn embeddings_are_computed_in_the_type_of_the_weights() {
    let case = Case::new("llama");
    let folder = tempfile::tempdir().expect("a folder");
    let inputs = folder.path().join("inputs.safetensors");
    let size = 2 * 32;
    let bytes: Vec<u8> = (0..size).flat_map(|at| (at as f32 / 32.0 - 1.0).to_le_bytes()).collect();
    let view = TensorView::new(Dtype::F32, vec![1, 2, 32], &bytes).expect("a tensor");
    safetensors::serialize_to_file([("inputs_embeds", view)], None, &inputs).expect("written");
    let (model, inputs) = (case.model().display().to_string(), inputs.display().to_string());
    for backend in BACKENDS {
        for dtype in ["f32", "bf16", "f16"] {
            let args = ["capture", "--model", &model, "--inputs", &inputs, "--backend", backend, "--dtype", dtype];
            let summary: Value = serde_json::from_str(&succeed(&[&args[..], &["--json"]].concat())).expect("JSON");
            assert_eq!(summary["rows"][0]["shape"], serde_json::json!([1, 2, 99]), "{backend} {dtype}");
            let computed = if *backend == "ndarray" { "f32" } else { dtype };
            assert_eq!(summary["dtype"], computed, "{backend}");
        }
    }
}

#[test]
fn positions_can_be_given() {
    let case = Case::new("llama");
    let folder = tempfile::tempdir().expect("a folder");
    let (inputs, save) = (folder.path().join("inputs.safetensors"), folder.path().join("o.safetensors"));
    let mut all = tensors(&case.inputs());
    let ids = &all["input_ids"];
    let length = ids.shape[1];
    let positions = (0..length as i64).flat_map(i64::to_le_bytes).collect();
    let positions = crate::support::Stored { dtype: Dtype::I64, shape: vec![1, length], bytes: positions };
    all.insert("position_ids".to_owned(), positions);
    let views = all.iter().map(|(name, stored)| {
        (name, TensorView::new(stored.dtype, stored.shape.clone(), &stored.bytes).expect("a tensor"))
    });
    safetensors::serialize_to_file(views, None, &inputs).expect("written");
    let mut args = case.capture();
    let given = args.iter().position(|arg| arg == "--inputs").expect("has inputs");
    args[given + 1] = inputs.display().to_string();
    args.extend(["--save".to_owned(), save.display().to_string()]);
    succeed(&args);
    assert_alike("positions", &tensors(&save), &tensors(&case.folder.join("outputs.safetensors")));
}

#[test]
fn the_summary_names_every_value() {
    let case = Case::new("llama");
    let text = succeed(&case.capture());
    for part in
        ["LlamaForCausalLM", "layers.0 (input)", "layers.2.self_attn", "[2, 4, 10, 10]", "entropy", "most attended"]
    {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(text.lines().all(|line| line.trim_end() == line), "no line ends in spaces");
}

#[test]
fn attention_is_said_to_be_what_it_is() {
    let model = Case::new("llama").model().display().to_string();
    for backend in BACKENDS {
        let said = |more: &[&str]| {
            let mut args = vec!["capture", "--model", &model, "--ids", "5,6", "--backend", backend, "--json"];
            args.extend(more);
            let summary: Value = serde_json::from_str(&succeed(&args)).expect("JSON");
            (summary["attention"].as_str().expect("words").to_owned(), summary["leave_fused_attention"].clone())
        };
        let none = serde_json::json!([]);
        assert_eq!(said(&["--attn-implementation", "eager"]), ("eager, by the formula".to_owned(), none.clone()));
        let recorded = said(&["--output", "attentions=1"]);
        if *backend == "ndarray" {
            assert_eq!(recorded, ("sdpa, by the formula on ndarray".to_owned(), none));
            continue;
        }
        assert_eq!(said(&[]), (format!("sdpa, fused where {backend} can"), none));
        let words = "sdpa, fused where flex can; by the formula in layers.1.self_attn, whose weights are recorded";
        assert_eq!(recorded, (words.to_owned(), serde_json::json!(["layers.1.self_attn"])));
    }
}

#[test]
fn the_summary_for_programs() {
    let case = Case::new("llama");
    let mut args = case.capture();
    args.push("--json".to_owned());
    let summary: Value = serde_json::from_str(&succeed(&args)).expect("JSON and nothing else");
    assert_eq!(summary["class"], "LlamaForCausalLM");
    assert_eq!(summary["tuple_order"], case.meta["tuple_order"]);
    let rows = summary["rows"].as_array().expect("rows");
    let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    let expected = ["logits", "hidden_states.0", "hidden_states.1", "hidden_states.2", "hidden_states.3"];
    assert_eq!(names[..5], expected);
    assert_eq!(names[5..], ["attentions.0", "attentions.1", "attentions.2"]);
    for row in rows {
        let name = row["name"].as_str().expect("a name");
        assert_eq!(row["shape"], case.meta["shapes"][name], "{name}");
        assert!(row["norm"].as_f64().is_some_and(|norm| norm > 0.0), "{name}");
        assert_eq!(row["entropy_bits"].is_number(), name.starts_with("attentions"), "{name}");
    }
    assert_eq!(rows[5]["module"], "layers.0.self_attn");
    assert_eq!(summary["heads"].as_array().map(Vec::len), Some(12));
    assert!(summary["seconds"]["forward"].as_f64().is_some());
}

#[test]
fn nothing_asked_for_is_only_the_result() {
    let case = Case::new("llama");
    let model = case.model().display().to_string();
    let args = ["capture", "--model", &model, "--ids", "5,6,7", "--use-cache", "false", "--json"];
    let summary: Value = serde_json::from_str(&succeed(&args)).expect("JSON");
    assert_eq!(summary["tuple_order"], serde_json::json!(["logits"]));
    assert_eq!(summary["rows"][0]["shape"], serde_json::json!([1, 3, 99]));
}

#[test]
fn a_failed_run_leaves_earlier_files_alone() {
    let case = Case::new("llama");
    let folder = tempfile::tempdir().expect("a folder");
    let save = folder.path().join("o.safetensors");
    let path = save.display().to_string();
    let mut args = case.capture();
    args.extend(["--save".to_owned(), path.clone()]);
    succeed(&args);
    let first = std::fs::read(&save).expect("saved");
    let mut wrong = args.clone();
    wrong.extend(["--output".to_owned(), "hidden_states=9".to_owned()]);
    assert!(!run(&wrong).status.success());
    assert_eq!(std::fs::read(&save).expect("still there"), first);
    succeed(&args);
    assert_eq!(std::fs::read(&save).expect("replaced"), first, "the same every time");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1, "no temporary files");
}

#[test]
fn a_reader_may_leave_early() {
    let case = Case::new("llama");
    let mut child = command()
        .args(case.capture())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the tool can be started");
    drop(child.stdout.take());
    let mut errors = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut errors).expect("readable");
    assert!(child.wait().expect("ends").success());
    assert_eq!(errors, "");
}
