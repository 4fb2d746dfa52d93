use crate::support::{Case, fail, succeed};
use serde_json::{Value, json};

fn plan(args: &[&str]) -> Value {
    let mut all = vec!["plan", "--json"];
    all.extend(args);
    serde_json::from_str(&succeed(&all)).expect("JSON and nothing else")
}

/// A folder with a config and no weights.
fn config_only() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::copy(Case::new("llama").folder.join("config.json"), folder.path().join("config.json")).expect("copied");
    folder
}

#[test]
fn paths_without_weights() {
    let folder = config_only();
    let model = folder.path().display().to_string();
    let plan = plan(&["--model", &model, "--output", "hidden_states=0,-1", "--output", "attentions=1.."]);
    assert_eq!(plan["class"], "LlamaForCausalLM");
    let paths = |key: usize| -> Vec<(i64, String)> {
        let values = plan["keys"][key]["values"].as_array().expect("values");
        let path = |value: &Value| {
            (value["layer"].as_i64().expect("a layer"), value["module"].as_str().expect("a path").to_owned())
        };
        values.iter().map(path).collect()
    };
    assert_eq!(paths(0), [(0, "layers.0".to_owned()), (3, "layers.2".to_owned())]);
    assert_eq!(paths(1), [(1, "layers.1.self_attn".to_owned()), (2, "layers.2.self_attn".to_owned())]);
    assert_eq!(plan["keys"][0]["values"][0]["is_input"], true);
    assert_eq!(plan["leave_fused_attention"], json!(["layers.1.self_attn", "layers.2.self_attn"]));
    assert_eq!(plan["patches"], json!({ "applied": [], "matched_nothing": [] }));
}

#[test]
fn eager_attention_has_nothing_to_leave() {
    let folder = config_only();
    let model = folder.path().display().to_string();
    let plan = plan(&["--model", &model, "--output", "attentions", "--attn-implementation", "eager"]);
    assert_eq!(plan["leave_fused_attention"], json!([]));
}

#[cfg(feature = "capture")]
#[test]
fn shapes_are_those_of_a_run() {
    for (name, values) in [("llama", 7), ("qwen2_moe", 12)] {
        assert_eq!(shapes_of(&Case::new(name)), values, "{name}");
    }
}

/// Compares what is planned with what is recorded; how many values there are.
#[cfg(feature = "capture")]
fn shapes_of(case: &Case) -> usize {
    let mut args = case.capture();
    args.push("--json".to_owned());
    let ran: Value = serde_json::from_str(&succeed(&args)).expect("JSON");
    args[0] = "plan".to_owned();
    let planned: Value = serde_json::from_str(&succeed(&args)).expect("JSON");
    let mut compared = 0;
    for key in planned["keys"].as_array().expect("keys") {
        for value in key["values"].as_array().expect("values") {
            let name = format!("{}.{}", key["key"].as_str().expect("a key"), value["layer"]);
            let rows = ran["rows"].as_array().expect("rows");
            let row = rows.iter().find(|row| row["name"] == name.as_str()).expect("recorded");
            assert_eq!(row["shape"], value["shape"], "{name}");
            let elements: u64 = value["shape"].as_array().expect("a shape").iter().filter_map(Value::as_u64).product();
            assert_eq!(value["bytes"].as_u64(), Some(4 * elements), "{name}");
            compared += 1;
        }
    }
    compared
}

#[cfg(feature = "capture")]
#[test]
fn a_length_in_place_of_an_input() {
    let folder = config_only();
    let model = folder.path().display().to_string();
    let plan = plan(&["--model", &model, "--output", "attentions=0", "--length", "7", "--dtype", "bf16"]);
    assert_eq!(plan["keys"][0]["values"][0]["shape"], json!([1, 4, 7, 7]));
    assert_eq!(plan["keys"][0]["values"][0]["bytes"], 4 * 7 * 7 * 2);
}

#[cfg(feature = "capture")]
#[test]
fn inputs_of_a_plan_are_checked_as_those_of_a_run() {
    let folder = config_only();
    let model = folder.path().display().to_string();
    let error = fail(1, &["plan", "--model", &model, "--ids", "1,99"]);
    assert!(error.contains("`input_ids` holds 99 at [0, 1], expected ids below 99"), "{error}");
}

/// Height and width, where they differ.
#[test]
fn an_image_in_place_of_an_input_is_of_the_size_that_the_model_takes() {
    let model = Case::new("vit-pair").model().display().to_string();
    let plan = plan(&["--model", &model, "--output", "hidden_states=0"]);
    assert_eq!(plan["input"]["shapes"], json!({ "pixel_values": [1, 2, 13, 18] }));
}

#[test]
fn what_cannot_be_recorded_is_an_error() {
    let folder = config_only();
    let model = folder.path().display().to_string();
    let error = fail(1, &["plan", "--model", &model, "--output", "hidden_state"]);
    assert!(error.contains("did you mean `hidden_states`?"), "{error}");
    let error = fail(1, &["plan", "--model", &model, "--output", "hidden_states=4"]);
    assert!(error.contains("valid are 0 to 3 and -4 to -1"), "{error}");
}

#[test]
fn nothing_asked_for_lists_what_there_is() {
    let folder = config_only();
    let model = folder.path().display().to_string();
    let text = succeed(&["plan", "--model", &model]);
    assert!(text.contains("can record hidden_states, attentions"), "{text}");
}

/// Every family can be planned without inputs: the tool makes some that fit.
#[test]
fn any_model_is_planned_without_inputs() {
    for case in Case::all() {
        let model = case.model().display().to_string();
        let class = case.meta["model_class"].as_str().expect("a name");
        let text = succeed(&["plan", "--model", &model, "--task", class, "--output", "hidden_states=0", "--json"]);
        let plan: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let values = plan["keys"].as_array().expect("keys").iter().flat_map(|key| key["values"].as_array());
        let planned: Vec<&serde_json::Value> = values.flatten().collect();
        assert!(!planned.is_empty(), "{}: nothing is planned", case.name);
        for value in planned {
            assert!(value["bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{}: {value}", case.name);
        }
    }
}
