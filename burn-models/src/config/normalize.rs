use serde_json::{Map, Value};

/// Fields where `null` means the same as not being there.
const NULL_IS_ABSENT: [&str; 12] = [
    "architectures",
    "attention_dropout",
    "attn_implementation",
    "dtype",
    "experts_implementation",
    "hidden_act",
    "initializer_range",
    "mlp_only_layers",
    "router_aux_loss_coef",
    "rope_parameters",
    "tie_word_embeddings",
    "use_cache",
];

/// Turns a `config.json` of any age into the spelling of Transformers 5.
///
/// `torch_dtype` becomes `dtype`; `rope_theta`, `rope_scaling` and `partial_rotary_factor` move into
/// `rope_parameters`, whose `type` becomes `rope_type`; `_attn_implementation` and `_experts_implementation` lose their
/// underscore. Where both spellings are present, the newer one wins.
pub fn normalized(mut config: Map<String, Value>) -> Map<String, Value> {
    rename(&mut config, "torch_dtype", "dtype");
    rename(&mut config, "_attn_implementation", "attn_implementation");
    rename(&mut config, "_experts_implementation", "experts_implementation");
    collect_rope(&mut config);
    for field in NULL_IS_ABSENT {
        if config.get(field).is_some_and(Value::is_null) {
            config.remove(field);
        }
    }
    config
}

fn rename(config: &mut Map<String, Value>, old: &str, new: &str) {
    if let Some(value) = config.remove(old)
        && config.get(new).is_none_or(Value::is_null)
    {
        config.insert(new.to_owned(), value);
    }
}

/// Takes fields by the names that other families have for them, where a family's own is absent or null. What stands
/// there under both names is kept.
pub(crate) fn take_other_names(config: &mut Map<String, Value>, names: &[(&str, &str)]) {
    for (other, own) in names {
        if config.get(*own).is_none_or(Value::is_null)
            && let Some(value) = config.remove(*other)
        {
            config.insert((*own).to_owned(), value);
        }
    }
}

fn collect_rope(config: &mut Map<String, Value>) {
    let scaling = config.remove("rope_scaling");
    let loose = ["rope_theta", "partial_rotary_factor"].map(|name| (name, config.remove(name)));
    let mut rope = match (config.remove("rope_parameters"), scaling) {
        (Some(Value::Object(rope)), _) | (_, Some(Value::Object(rope))) => rope,
        // Not an object: left for the reader to refuse.
        (Some(other), _) if !other.is_null() => {
            config.insert("rope_parameters".to_owned(), other);
            return;
        }
        _ => Map::new(),
    };
    rename(&mut rope, "type", "rope_type");
    for (name, value) in loose {
        if let Some(value) = value
            && !value.is_null()
        {
            rope.entry(name).or_insert(value);
        }
    }
    let is_llama3 = rope.get("rope_type").and_then(Value::as_str) == Some("llama3");
    if is_llama3 && let Some(length) = config.get("max_position_embeddings") {
        rope.entry("original_max_position_embeddings").or_insert_with(|| length.clone());
    }
    if !rope.is_empty() {
        config.insert("rope_parameters".to_owned(), Value::Object(rope));
    }
}

/// Adds a family's own `rope_theta` to `rope_parameters` that say other things, but not that.
pub(crate) fn set_default_theta(config: &mut Map<String, Value>, theta: f64) {
    if let Some(Value::Object(rope)) = config.get_mut("rope_parameters") {
        rope.entry("rope_theta").or_insert_with(|| theta.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(value: Value) -> Value {
        let Value::Object(map) = value else { unreachable!("the tests pass objects") };
        Value::Object(normalized(map))
    }

    #[test]
    fn both_spellings_read_the_same() {
        let old = of(json!({
            "torch_dtype": "float16", "rope_theta": 5.0, "rope_scaling": {"type": "linear", "factor": 2.0}
        }));
        let new = of(json!({
            "dtype": "float16", "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 5.0}
        }));
        assert_eq!(old, new);
    }

    #[test]
    fn the_newer_spelling_wins() {
        let both = of(json!({
            "dtype": "a", "torch_dtype": "b", "rope_theta": 1.0, "rope_parameters": {"rope_theta": 2.0}
        }));
        assert_eq!(both, json!({"dtype": "a", "rope_parameters": {"rope_theta": 2.0}}));
    }

    #[test]
    fn other_names_stand_for_absent_ones() {
        let Value::Object(mut config) = json!({"a": 1, "b": 2, "own_b": null, "c": 3, "own_c": 4}) else {
            unreachable!("it is an object")
        };
        take_other_names(&mut config, &[("a", "own_a"), ("b", "own_b"), ("c", "own_c"), ("d", "own_d")]);
        assert_eq!(Value::Object(config), json!({"own_a": 1, "own_b": 2, "c": 3, "own_c": 4}));
    }

    #[test]
    fn null_scaling_is_no_scaling() {
        let config = of(json!({"rope_scaling": null, "rope_theta": 3.0}));
        assert_eq!(config, json!({"rope_parameters": {"rope_theta": 3.0}}));
    }
}
