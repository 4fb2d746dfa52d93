//! Some forward passes of 128 tokens and nothing else, to count instructions where time is too noisy: one layer of the
//! shape of SmolLM2-135M's, so that a simulated processor is done in minutes.
//!
//! ```text
//! scripts/count_instructions.sh
//! ```

use burn::tensor::{Device, Int, Tensor};
use burn_models::llama::{LlamaConfig, LlamaForCausalLM};
use patching_core::prelude::*;

const CONFIG: &str = r#"{
    "model_type": "llama", "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 1,
    "num_attention_heads": 9, "num_key_value_heads": 3, "vocab_size": 64, "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5, "tie_word_embeddings": true
}"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, attention, record, passes] = arguments.as_slice() else {
        return Err("usage: capture_cost eager|sdpa off|hidden_states|attentions PASSES".into());
    };
    let mut config = LlamaConfig::from_json(CONFIG)?;
    config.set_attn_implementation(attention);
    let model = LlamaForCausalLM::from_config(&config, &Device::flex())?;
    let kwargs = ForwardKwargs::new().use_cache(false);
    let kwargs = if record == "off" { kwargs } else { kwargs.output(record.as_str(), true) };
    let ids: Vec<i64> = (0..128).map(|i| (i * 7919 + 13) % 64).collect();
    for _ in 0..passes.parse()? {
        model.forward(Tensor::<1, Int>::from_data(ids.as_slice(), &Device::flex()).unsqueeze::<2>(), &kwargs)?;
    }
    Ok(())
}
