//! Some forward passes of 128 tokens and nothing else, to count instructions where time is too noisy.
//!
//! ```text
//! scripts/count_instructions.sh MODEL_DIR
//! ```

use burn::tensor::{Device, Int, Tensor};
use burn_models::llama::LlamaForCausalLM;
use patching_core::prelude::*;
use patching_core::weights::LoadOptions;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, folder, attention, record, passes] = arguments.as_slice() else {
        return Err("usage: capture_cost MODEL_DIR eager|sdpa off|hidden_states|attentions PASSES".into());
    };
    let options = LoadOptions::new().attn_implementation(attention);
    let (model, _) = LlamaForCausalLM::from_pretrained_with(folder, &Device::flex(), &options)?;
    let kwargs = ForwardKwargs::new().use_cache(false);
    let kwargs = if record == "off" { kwargs } else { kwargs.output(record.as_str(), true) };
    let ids: Vec<i64> = (0..128).map(|i| (i * 7919 + 13) % 49152).collect();
    for _ in 0..passes.parse()? {
        model.forward(Tensor::<1, Int>::from_data(ids.as_slice(), &Device::flex()).unsqueeze::<2>(), &kwargs)?;
    }
    Ok(())
}
