//! The trained model that comes along: what the README promises of it.

#[path = "../../examples/train_tiny_decoder/data.rs"]
mod data;
#[path = "../../examples/train_tiny_decoder/scores.rs"]
mod scores;

use crate::support::{json, succeed};
use burn::tensor::Device;
use burnlens::burn_models::llama::LlamaForCausalLM;
use burnlens::prelude::*;
use data::{Sequence, Source};
use scores::Scores;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tiny-decoder")
}

#[cfg(feature = "flex")]
#[test]
fn its_attention_shows_induction() {
    let device = Device::flex();
    let model = LlamaForCausalLM::from_pretrained(folder(), &device).expect("loads");
    // another seed than in training and in the report of the training
    let mut source = Source::new(99, 48);
    let unseen: Vec<Sequence> = (0..16).map(|_| source.next()).collect();
    let scores = Scores::of(&model, &unseen, &device).expect("runs");
    assert!(scores.accuracy > 0.97, "foresees {:.3} of what can be foreseen", scores.accuracy);
    let (_, previous) = Scores::best(&scores.previous[0]);
    assert!(previous > 0.7, "no head of layer 0 looks at the token before: {:?}", scores.previous);
    let (_, induction) = Scores::best(&scores.induction[1]);
    assert!(induction > 0.7, "no head of layer 1 looks at what came after: {:?}", scores.induction);
    let (_, too_early) = Scores::best(&scores.induction[0]);
    assert!(too_early < 0.5, "layer 0 cannot know what came before a token: {:?}", scores.induction);
}

#[test]
fn it_is_small() {
    let files = std::fs::read_dir(folder()).expect("a folder");
    let size: u64 = files.map(|file| file.expect("a file").metadata().expect("a size").len()).sum();
    assert!(size < 1_000_000, "{size} bytes");
}

#[test]
fn its_tokenizer_is_the_example_s() {
    assert_eq!(json(&folder().join("tokenizer.json")), data::tokenizer());
}

#[test]
fn without_arguments_its_heads_are_shown() {
    let text = succeed(&["capture"]);
    for part in ["built-in example", "<s> k d w f p m z k d w f", "layers.1.self_attn"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let summary: Value = serde_json::from_str(&succeed(&["capture", "--json"])).expect("JSON");
    let heads = summary["heads"].as_array().expect("heads");
    let weight = |head: &Value, of: &str| head[of].as_f64().unwrap_or(0.0);
    // position 5 is the `p` that followed the earlier `f`
    let induction =
        |head: &&Value| head["layer"] == 1 && head["most_attended"] == 5 && weight(head, "after_same") > 0.5;
    assert!(heads.iter().any(|head| induction(&head)), "{heads:?}");
    assert_eq!(summary["next_token"]["id"], 3 + i64::from(b'p' - b'a'));
    assert!(weight(&summary["next_token"], "probability") > 0.9, "{summary}");
    let previous = |head: &&Value| head["layer"] == 0 && head["most_attended"] == 10 && weight(head, "previous") > 0.5;
    assert!(heads.iter().any(|head| previous(&head)), "{heads:?}");
}

#[cfg(feature = "text")]
#[test]
fn it_continues_a_text() {
    let args = ["capture", "--text", "k d w f k d", "--generate", "6", "--json"];
    let summary: Value = serde_json::from_str(&succeed(&args)).expect("JSON");
    assert_eq!(summary["input"]["shapes"]["input_ids"], serde_json::json!([1, 7]));
    assert_eq!(summary["generated"]["text"], serde_json::json!(["w f k d w f"]));
}

#[test]
fn a_plan_of_it() {
    let text = succeed(&["plan"]);
    for part in ["hidden_states", "layers.1.self_attn", "none are registered"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}
