use crate::support::{Case, assert_alike, fail, succeed, tensors};
use serde_json::Value;
use std::collections::BTreeMap;

/// Generates with a case's inputs and gives what was saved.
fn generate(case: &Case, more: &[&str]) -> BTreeMap<String, crate::support::Stored> {
    let folder = tempfile::tempdir().expect("a folder");
    let save = folder.path().join("o.safetensors").display().to_string();
    let (model, inputs) = (case.model().display().to_string(), case.inputs().display().to_string());
    let tokens = tensors(&case.folder.join("generate.safetensors"))["generated_ids"].shape[1].to_string();
    let mut args = vec!["capture", "--model", &model, "--inputs", &inputs, "--generate", &tokens, "--save", &save];
    args.extend(more);
    succeed(&args);
    tensors(save.as_ref())
}

/// The tensors whose names begin with `prefix`.
fn only(
    mut from: BTreeMap<String, crate::support::Stored>,
    keep: impl Fn(&str) -> bool,
) -> BTreeMap<String, crate::support::Stored> {
    from.retain(|name, _| keep(name));
    from
}

#[test]
fn tokens_are_the_reference_s() {
    for case in Case::all().into_iter().filter(|case| case.folder.join("generate.safetensors").exists()) {
        let name = case.name.as_str();
        let found = only(generate(&case, &[]), |name| name == "generated_ids" || name == "sequences");
        let expected = tensors(&case.folder.join("generate.safetensors"));
        let expected = only(expected, |name| name != "sequences_with_eos");
        assert_alike(name, &found, &expected);
    }
}

#[test]
fn a_sequence_ends_at_its_token() {
    let case = Case::new("llama");
    let found = generate(&case, &["--eos-token-id", "74", "--pad-token-id", "0"]);
    let expected = tensors(&case.folder.join("generate.safetensors"));
    assert_eq!(found["sequences"], expected["sequences_with_eos"]);
}

#[test]
fn where_all_end_early_the_rest_is_padding() {
    let model = Case::new("llama").model().display().to_string();
    let folder = tempfile::tempdir().expect("a folder");
    let save = folder.path().join("o.safetensors").display().to_string();
    // the first sequence of the reference's, which continues with 45, 74
    let prompt = [93, 92, 8, 41, 65, 45, 57, 69, 21, 60];
    let ids = prompt.map(|id| id.to_string()).join(",");
    let args =
        ["capture", "--model", &model, "--ids", &ids, "--generate", "6", "--eos-token-id", "74", "--save", &save];
    for (more, pad) in [(&["--pad-token-id", "7"][..], 7), (&[][..], 0)] {
        let mut args = args.to_vec();
        args.extend(more);
        succeed(&args);
        let found = tensors(save.as_ref());
        assert_eq!(found["generated_ids"].shape, [1, 6]);
        assert_eq!(found["generated_ids"].ints(), [45, 74, pad, pad, pad, pad]);
        assert_eq!(found["sequences"].shape, [1, 12], "as the reference gives it");
        assert_eq!(found["sequences"].ints()[10..], [45, 74]);
    }
}

#[test]
fn every_step_is_recorded() {
    let case = Case::new("llama");
    let found = generate(&case, &["--steps", "--output", "hidden_states", "--output", "attentions"]);
    let found = only(found, |name| name.starts_with("step."));
    assert_alike("steps", &found, &tensors(&case.folder.join("generate_steps.safetensors")));
}

#[test]
fn without_steps_no_step_is_held() {
    let case = Case::new("llama");
    let found = generate(&case, &["--output", "hidden_states"]);
    assert!(found.keys().all(|name| !name.starts_with("step.")));
    assert!(found.contains_key("hidden_states.0"));
}

#[test]
fn a_base_model_generates_nothing() {
    let case = Case::new("llama");
    let model = case.model().display().to_string();
    let error = fail(1, &["capture", "--model", &model, "--task", "base", "--ids", "1", "--generate", "2"]);
    assert!(error.contains("`LlamaModel` does not generate text"), "{error}");
}

#[test]
fn the_continuation_is_told() {
    let case = Case::new("llama");
    let model = case.model().display().to_string();
    let args = ["capture", "--model", &model, "--ids", "5,6,7", "--generate", "3", "--json"];
    let summary: Value = serde_json::from_str(&succeed(&args)).expect("JSON");
    assert_eq!(summary["generated"]["generated_ids"][0].as_array().map(Vec::len), Some(3));
    assert_eq!(summary["generated"]["sequences"][0].as_array().map(Vec::len), Some(6));
}
