use crate::support::{Case, device};
use burn_models::config::{DecoderConfig, LayerType};
use burn_models::layers::inverse_frequencies;
use burn_models::llama::{LlamaConfig, LlamaForCausalLM};
use burn_models::mistral::MistralConfig;
use burn_models::mixtral::MixtralConfig;
use burn_models::qwen2::Qwen2Config;
use burn_models::qwen2_moe::Qwen2MoeConfig;
use burn_models::qwen3::Qwen3Config;
use patching_core::prelude::*;
use patching_core::weights::LoadOptions;
use serde_json::{Value, json};

fn llama(fields: Value) -> Result<LlamaConfig, String> {
    let mut config = json!({
        "model_type": "llama", "vocab_size": 10, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 2
    });
    for (name, value) in fields.as_object().expect("an object") {
        config[name] = value.clone();
    }
    LlamaConfig::from_json(&config.to_string()).map_err(|error| error.to_string())
}

#[track_caller]
fn refused(fields: Value, expected: &str) {
    let error = llama(fields).expect_err("refused");
    assert!(error.contains(expected), "{error}");
}

#[test]
fn what_is_absent_has_the_reference_s_default() {
    let llama = LlamaConfig::from_json("{}").expect("all defaults");
    assert_eq!(llama, LlamaConfig::default());
    assert_eq!((llama.num_key_value_heads(), llama.head_dim()), (32, 128));
    assert_eq!(llama.rope_parameters.rope_theta, 10_000.0);
    let mistral = MistralConfig::from_json("{}").expect("all defaults");
    assert_eq!((mistral.sliding_window, mistral.num_key_value_heads()), (Some(4096), 8));
    let qwen2 = Qwen2Config::from_json("{}").expect("all defaults");
    assert_eq!((qwen2.vocab_size, qwen2.windows()), (151_936, vec![None; 32]));
    let qwen3 = Qwen3Config::from_json("{}").expect("all defaults");
    assert_eq!((qwen3.head_dim, qwen3.num_attention_heads), (128, 32));
}

#[test]
fn null_means_none_where_the_default_is_a_number() {
    let mistral = MistralConfig::from_json(r#"{"sliding_window": null}"#).expect("valid");
    assert_eq!(mistral.sliding_window, None);
    assert_eq!(serde_json::to_value(&mistral).expect("JSON")["sliding_window"], Value::Null);
}

#[test]
fn written_configs_read_the_same_and_keep_what_is_unknown() {
    for name in ["llama", "llama3-rope", "llama-config-flags", "llama-classes"] {
        let text = std::fs::read_to_string(Case::new(name).folder().join("config.json")).expect("a config");
        let original: Value = serde_json::from_str(&text).expect("JSON");
        let config = LlamaConfig::from_json(&text).expect("valid");
        let written = serde_json::to_value(&config).expect("JSON");
        assert_eq!(LlamaConfig::from_json(&written.to_string()).expect("valid"), config);
        for (field, value) in original.as_object().expect("an object") {
            let same = match (value.as_f64(), written[field].as_f64()) {
                (Some(a), Some(b)) => a == b,
                _ if field == "rope_parameters" => true,
                _ => *value == written[field],
            };
            assert!(same, "{name}: `{field}` was {value}, is {}", written[field]);
        }
    }
    let odd = llama(json!({"my_field": {"a": [1, 2]}, "output_router_logits": true})).expect("valid");
    assert_eq!(serde_json::to_value(&odd).expect("JSON")["my_field"], json!({"a": [1, 2]}));
    assert_eq!(odd.output_flag("router_logits"), Some(Flag::On));
    assert_eq!(odd.output_flag("hidden_states"), None);
}

#[test]
fn old_spellings_are_written_as_new_ones() {
    let old = llama(json!({
        "torch_dtype": "bfloat16", "rope_theta": 500.0, "_attn_implementation": "eager",
        "rope_scaling": {"type": "linear", "factor": 2.0}
    }))
    .expect("valid");
    assert_eq!(old.attn_implementation(), Some("eager"));
    let written = serde_json::to_value(&old).expect("JSON");
    assert_eq!(written["dtype"], "bfloat16");
    let rope = json!({"rope_type": "linear", "rope_theta": 500.0, "factor": 2.0});
    assert_eq!(written["rope_parameters"], rope);
    for gone in ["torch_dtype", "rope_theta", "rope_scaling", "_attn_implementation", "attn_implementation"] {
        assert!(written.get(gone).is_none(), "{gone}");
    }
}

#[test]
fn flags_may_be_selections() {
    let config = llama(json!({"output_hidden_states": [0, -1], "output_attentions": 1, "use_cache": false}));
    let config = config.expect("valid");
    assert_eq!(config.output_flag("hidden_states"), Some(Flag::from([0, -1])));
    assert_eq!(config.output_flag("attentions"), Some(Flag::from(1)));
    assert_eq!(ConfigDefaults::use_cache(&config), Some(false));
    refused(json!({"output_attentions": {"a": 1}}), "`output_attentions` is {\"a\":1}, expected true, false");
}

/// Every forward pass asks for each key.
#[test]
fn asking_for_a_flag_allocates_nothing() {
    let plain = llama(json!({"output_router_logits": true})).expect("valid");
    let off = llama(json!({"output_hidden_states": false})).expect("valid");
    let on = llama(json!({"output_hidden_states": true})).expect("valid");
    for (config, expected) in [(plain, None), (off, Some(Flag::Off)), (on, Some(Flag::On))] {
        let mut found = None;
        let allocated = allocation_counter::measure(|| found = config.output_flag("hidden_states"));
        assert_eq!(found, expected);
        assert_eq!(allocated.count_total, 0, "{expected:?}");
    }
}

/// Checkpoints name implementations that only the program that wrote them had.
#[test]
fn an_attention_implementation_is_looked_up_only_when_a_model_is_made() {
    let config = llama(json!({"attn_implementation": "egaer"})).expect("it can be read");
    let error = LlamaForCausalLM::from_config(&config, &device()).expect_err("refused").to_string();
    assert!(error.contains("did you mean `eager`?"), "{error}");

    let folder = tempfile::tempdir().expect("a folder");
    let from = Case::new("llama");
    let model: LlamaForCausalLM = from.load(&device());
    model.save_pretrained(folder.path()).expect("saved");
    let path = folder.path().join("config.json");
    let mut text: Value = serde_json::from_str(&std::fs::read_to_string(&path).expect("a config")).expect("JSON");
    text["_attn_implementation"] = json!("flash_attention_2");
    std::fs::write(&path, text.to_string()).expect("written");
    let error = LlamaForCausalLM::from_pretrained(folder.path(), &device()).expect_err("refused").to_string();
    assert!(error.contains("flash_attention_2") && error.contains("eager, sdpa"), "{error}");
    let options = LoadOptions::new().attn_implementation("eager");
    let (model, _) = LlamaForCausalLM::from_pretrained_with(folder.path(), &device(), &options).expect("loads");
    assert_eq!(model.config().attn_implementation(), Some("eager"));
}

#[test]
fn errors_name_the_fields() {
    refused(json!({"hidden_size": 9}), "`hidden_size` is 9, expected a multiple of `num_attention_heads`, which is 2");
    refused(json!({"num_attention_heads": 4, "num_key_value_heads": 3}), "`num_attention_heads` is 4");
    refused(json!({"num_attention_heads": 0}), "`num_attention_heads`");
    refused(json!({"num_key_value_heads": 0}), "`num_key_value_heads` is 0");
    refused(json!({"head_dim": 3}), "`head_dim` is 3, expected an even number");
    refused(json!({"hidden_act": "swoosh"}), "`hidden_act`: unknown variant `swoosh`, expected");
    refused(json!({"vocab_size": "many"}), "`vocab_size`: invalid type: string \"many\", expected usize");
    refused(json!({"rope_parameters": {"rope_theta": "x"}}), "`rope_parameters.rope_theta`: invalid type");
    refused(json!({"rms_norm_eps": -1.0}), "`rms_norm_eps` is -1");
    let unsupported = "unsupported rope_type `yarn`, expected one of: default, linear, llama3";
    refused(json!({"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}), unsupported);
    refused(json!({"rope_scaling": {"type": "dynamic", "factor": 2.0}}), "unsupported rope_type `dynamic`");
    refused(json!({"rope_scaling": {"type": "linear"}}), "`factor` is missing");
    refused(json!({"rope_parameters": {"rope_theta": 0.0}}), "`rope_theta` is 0");
    refused(json!({"rope_parameters": {"rope_type": "llama3", "factor": 8.0}}), "`low_freq_factor` is missing");
    refused(json!({"head_dim": 1 << 17}), "`head_dim` is 131072, expected 1 to 65536");
}

#[test]
fn hostile_sizes_are_refused_before_anything_is_built() {
    for fields in [
        json!({"num_hidden_layers": 1_000_000_000}),
        json!({"hidden_size": 1_000_000_000_000_u64, "num_attention_heads": 2}),
        json!({"vocab_size": u64::MAX}),
        json!({"intermediate_size": 1_000_000_000_000_u64}),
        json!({"head_dim": 1_000_000_000_000_u64}),
        json!({"hidden_size": 100_000_000, "vocab_size": 100_000_000, "num_hidden_layers": 4000}),
        json!({"num_hidden_layers": -1}),
        json!({"hidden_size": 1.5}),
    ] {
        let error = llama(fields.clone()).expect_err("refused");
        assert!(!error.is_empty(), "{fields}");
    }
    let huge = LlamaConfig { num_hidden_layers: usize::MAX, ..LlamaConfig::default() };
    let error = LlamaForCausalLM::from_config(&huge, &device()).expect_err("refused").to_string();
    assert!(error.contains("`num_hidden_layers`"), "{error}");
}

#[test]
fn layers_with_windows() {
    let fields = r#""num_hidden_layers": 3, "sliding_window": 5, "use_sliding_window": true"#;
    let config = Qwen2Config::from_json(&format!("{{{fields}, \"max_window_layers\": 1}}")).expect("valid");
    assert_eq!(config.windows(), [None, Some(5), Some(5)]);
    let types = r#""layer_types": ["sliding_attention", "full_attention", "sliding_attention"]"#;
    let config = Qwen3Config::from_json(&format!("{{{fields}, {types}}}")).expect("valid");
    assert_eq!(config.windows(), [Some(5), None, Some(5)]);
    assert_eq!(config.layer_types.as_deref().map(|types| types[1]), Some(LayerType::FullAttention));

    let refused = |text: &str| Qwen2Config::from_json(text).expect_err("refused").to_string();
    let error = refused(&format!("{{{fields}, \"layer_types\": [\"full_attention\"]}}"));
    assert!(error.contains("`layer_types` has 1 entries, expected one for each of the 3 layers"), "{error}");
    let error = refused(&format!("{{\"num_hidden_layers\": 3, {types}}}"));
    assert!(error.contains("`sliding_window` is missing"), "{error}");
    let error = refused(
        &fields.replacen("\"num", "{\"num", 1).replace(": 5", ": 0").replace("true", "true, \"max_window_layers\": 0}"),
    );
    assert!(error.contains("`sliding_window` is 0"), "{error}");
}

#[test]
fn an_activation_keeps_the_name_it_was_given() {
    for name in ["silu", "swish", "gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "quick_gelu", "relu", "tanh"] {
        let config = llama(json!({"hidden_act": name})).expect("valid");
        assert_eq!(serde_json::to_value(&config).expect("JSON")["hidden_act"], name);
    }
}

/// The reference's decoders ignore the share, and fail where they also scale.
#[test]
fn these_families_turn_whole_heads() {
    let rope = |fields: Value| json!({"head_dim": 8, "rope_parameters": fields});
    let whole = llama(rope(json!({"rope_type": "default", "rope_theta": 777.0}))).expect("valid");
    let part = json!({"rope_type": "default", "rope_theta": 777.0, "partial_rotary_factor": 0.5});
    let part = llama(rope(part)).expect("valid");
    let of = |config: &LlamaConfig| inverse_frequencies(&config.rope_parameters, config.head_dim());
    assert_eq!(of(&part), of(&whole));
    assert_eq!(part.rope_parameters.partial_rotary_factor, Some(0.5), "kept for saving");
    refused(
        rope(json!({"rope_type": "linear", "factor": 2.0, "partial_rotary_factor": 0.5})),
        "`partial_rotary_factor` is 0.5, expected 1 with the rope_type `linear`",
    );
}

/// Each number of a config in turn is made one that cannot be built; gives how many were refused.
fn errors_name_what_there_is<C: DecoderConfig + Default>() -> usize {
    let fields = serde_json::to_value(C::default()).expect("JSON");
    let fields = fields.as_object().expect("an object");
    let mut refused = 0;
    for (name, value) in fields {
        // what is absent by default is a number, too, where it is one of these
        let is_number = value.is_number() || ["sliding_window", "head_dim"].contains(&name.as_str());
        let hostile = [json!(0), json!(1_u64 << 40), json!(u64::MAX), json!(-1), json!(-1.5), json!(1e300)];
        for hostile in hostile.into_iter().filter(|_| is_number) {
            let mut changed = fields.clone();
            changed.insert(name.clone(), hostile.clone());
            let Err(error) = C::from_json(&Value::Object(changed).to_string()) else { continue };
            let error = error.to_string();
            refused += 1;
            // all parameters together may be too many
            let mut quoted =
                error.split('`').skip(1).step_by(2).filter(|quoted| !["config.json", "."].contains(quoted));
            if let Some(named) = quoted.next() {
                let named = named.split('.').next().unwrap_or_default();
                let is_there = fields.contains_key(named) || ["head_dim", "num_labels"].contains(&named);
                assert!(is_there, "{} with `{name}` of {hostile}: {error}", C::MODEL_TYPES[0]);
            }
            for empty in ["1 to 0", "0 to 0"] {
                assert!(!error.contains(empty), "{} with `{name}` of {hostile}: {error}", C::MODEL_TYPES[0]);
            }
        }
    }
    refused
}

#[test]
fn errors_of_every_family_name_what_there_is() {
    let refused = [
        errors_name_what_there_is::<LlamaConfig>(),
        errors_name_what_there_is::<MistralConfig>(),
        errors_name_what_there_is::<MixtralConfig>(),
        errors_name_what_there_is::<Qwen2Config>(),
        errors_name_what_there_is::<Qwen2MoeConfig>(),
        errors_name_what_there_is::<Qwen3Config>(),
    ];
    assert!(refused.iter().all(|refused| *refused > 30), "{refused:?}");

    let of = |fields: &str| MixtralConfig::from_json(fields).expect_err("refused").to_string();
    let none = of(r#"{"num_local_experts": 0}"#);
    assert!(none.contains("`num_local_experts` is 0, expected 1 to 65536"), "{none}");
    let many = of(r#"{"num_experts_per_tok": 9}"#);
    assert!(many.contains("`num_experts_per_tok` is 9, expected 1 to 8, which is `num_local_experts`"), "{many}");
    let empty = Qwen2MoeConfig::from_json(r#"{"moe_intermediate_size": 0}"#).expect_err("refused").to_string();
    assert!(empty.contains("`moe_intermediate_size` is 0"), "{empty}");
}
