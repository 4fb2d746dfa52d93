use crate::support::{Case, fail};

fn llama() -> String {
    Case::new("llama").model().display().to_string()
}

#[test]
fn wrong_usage_is_2() {
    let model = llama();
    let all: [(&[&str], &str); 14] = [
        (&[], "Usage"),
        (&["captur"], "unrecognized subcommand"),
        (&["capture", "--model", &model], "an input is needed"),
        (&["capture", "--ids", "1", "--text", "a"], "cannot be used with"),
        (&["capture", "--ids", "a"], "invalid value"),
        (&["capture", "--output", "hidden_states=x"], "is not a selection"),
        (&["capture", "--output", "attentions=0", "--output", "attentions=1"], "`--output attentions` is given twice"),
        (&["plan", "--output", "attentions", "--output", "attentions"], "`--output attentions` is given twice"),
        (&["capture", "--steps"], "--generate"),
        (&["capture", "--generate", "0"], "expected a number from 1 to"),
        (&["plan", "--length", "0"], "expected a number from 1 to"),
        (&["plan", "--length", "9999999999999999999"], "expected a number from 1 to 16777216"),
        (&["convert", "--model", &model], "--to"),
        (&["convert", "--model", &model, "--to", "x", "--max-shard-size", "5 apples"], "is no size"),
    ];
    for (args, part) in all {
        let error = fail(2, args);
        assert!(error.contains(part), "{args:?}: {error}");
    }
}

#[test]
fn what_goes_wrong_is_1_and_said() {
    let model = llama();
    let all: [(&[&str], &str); 9] = [
        (&["capture", "--model", "/nowhere", "--ids", "1"], "/nowhere"),
        (&["capture", "--model", &model, "--ids", "1,2", "--output", "attention"], "did you mean `attentions`?"),
        (&["capture", "--model", &model, "--ids", "1,2", "--output", "attentions=3"], "valid are 0 to 2"),
        (&["capture", "--model", &model, "--ids", "1,99"], "`input_ids` holds 99 at [0, 1], expected ids below 99"),
        (&["capture", "--model", &model, "--ids", "1,4294967297"], "holds 4294967297 at [0, 1]"),
        (&["capture", "--model", &model, "--text", "a"], "there is no tokenizer"),
        (&["capture", "--model", &model, "--ids", "1", "--attn-implementation", "egaer"], "did you mean `eager`?"),
        (
            &["capture", "--model", &model, "--ids", "1", "--task", "LlamaForCausalLm"],
            "did you mean `LlamaForCausalLM`?",
        ),
        (&["capture", "--model", &model, "--inputs", "/nowhere.safetensors"], "/nowhere.safetensors"),
    ];
    for (args, part) in all {
        let error = fail(1, args);
        assert!(error.starts_with("error: ") && error.contains(part), "{args:?}: {error}");
        assert!(!error.contains("panicked"), "{args:?}: {error}");
    }
}

#[test]
fn the_whole_chain_of_causes_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::copy(Case::new("llama").folder.join("config.json"), folder.path().join("config.json")).expect("copied");
    std::fs::write(folder.path().join("model.safetensors"), [0; 20]).expect("written");
    let path = folder.path().display().to_string();
    let error = fail(1, &["capture", "--model", &path, "--ids", "1"]);
    assert!(error.contains("cannot load"), "{error}");
    assert!(error.contains("\n  because: "), "{error}");
    assert!(error.contains("model.safetensors"), "{error}");
}

#[test]
fn unknown_inputs_have_near_matches() {
    use safetensors::Dtype;
    use safetensors::tensor::TensorView;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("i.safetensors");
    let bytes: Vec<u8> = [1_i64, 2].iter().flat_map(|id| id.to_le_bytes()).collect();
    let view = TensorView::new(Dtype::I64, vec![1, 2], &bytes).expect("a tensor");
    safetensors::serialize_to_file([("input_idz", view)], None, &path).expect("written");
    let error = fail(1, &["capture", "--model", &llama(), "--inputs", &path.display().to_string()]);
    assert!(error.contains("takes no `input_idz`, did you mean `input_ids`?"), "{error}");
}

#[test]
fn inputs_are_whole_regular_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = llama();
    let given =
        |path: &std::path::Path| fail(1, &["capture", "--model", &model, "--inputs", &path.display().to_string()]);
    let error = given(folder.path());
    assert!(error.contains("it is no regular file"), "{error}");
    #[cfg(unix)]
    {
        let error = given("/dev/zero".as_ref());
        assert!(error.contains("it is no regular file"), "{error}");
    }
    // Nothing but a hole, which takes no room on the disk: once without a header, once longer than its header says.
    let large = folder.path().join("large.safetensors");
    for header in ["", "\x02\0\0\0\0\0\0\0{}"] {
        std::fs::write(&large, header).expect("written");
        let file = std::fs::OpenOptions::new().write(true).open(&large).expect("opened");
        if file.set_len(1 << 43).is_ok() {
            let error = given(&large);
            assert!(error.contains("is not a valid safetensors file"), "{error}");
        }
    }
}

#[cfg(not(feature = "wgpu"))]
#[test]
fn a_backend_that_was_not_built_in_names_its_feature() {
    let error = fail(1, &["capture", "--backend", "wgpu"]);
    assert!(error.contains("build with `--features wgpu`"), "{error}");
}

#[test]
fn outputs_that_cannot_be_written_are_an_error() {
    let error = fail(1, &["capture", "--model", &llama(), "--ids", "1", "--save", "/nowhere/o.safetensors"]);
    assert!(error.contains("cannot write `/nowhere/o.safetensors`"), "{error}");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().display().to_string();
    let error = fail(1, &["capture", "--model", &llama(), "--ids", "1", "--save", &path]);
    assert!(error.contains("cannot write"), "{error}");
}
