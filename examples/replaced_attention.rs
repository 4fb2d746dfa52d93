//! The quick start: every attention of a Llama replaced by one of your own, without touching the model.
//!
//! `cargo run --example replaced_attention`

use burn::prelude::*;
use burnlens::burn_models::layers::LayerContext;
use burnlens::burn_models::llama::{LlamaAttention, LlamaConfig, LlamaForCausalLM};
use burnlens::patching_core::class::slots;
use burnlens::prelude::*;
use std::error::Error;

/// A replacement that does something of its own around the original: it passes on half of what attention adds.
#[derive(Module, Debug)]
pub struct HalvedAttention {
    // a slot of the class that is replaced holds the original, and adds nothing to the checkpoint's keys
    original: Slot<LlamaAttention>,
}

#[replaces(LlamaAttention)] // the compiler checks that `new` and `forward` are those of the class
impl HalvedAttention {
    pub fn new(config: &LlamaConfig, layer_idx: usize, init: &Init) -> Self {
        Self { original: LlamaAttention::slot(config, layer_idx, init) }
    }

    pub fn forward(&self, hidden_states: Tensor<3>, context: &mut LayerContext) -> (Tensor<3>, Option<Tensor<4>>) {
        let (attended, weights) = self.original.forward(hidden_states, context);
        (attended / 2.0, weights)
    }
}

pub fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::flex();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/models/tiny-decoder");

    // For all models that are loaded from here on. A key that is no plain name is an expression: `^Llama.*Attention$`.
    register_patch_mapping([("LlamaAttention", class::<HalvedAttention>())])?;
    println!("registered: {}", get_patch_mapping());

    let model = LlamaForCausalLM::from_pretrained(folder, &device)?;
    for (path, attention) in slots::<LlamaAttention, _>(&model) {
        println!("{path}: {}", attention.implementation_name());
        assert!(attention.implementation::<HalvedAttention>().is_some());
    }

    // It is recorded as the original would be, with no code for it.
    let tokens = || Tensor::<2, Int>::from_data([[2_i64, 13, 6, 25, 8, 13, 6]], &device);
    let everything = ForwardKwargs::new().output_hidden_states(true).output_attentions(true);
    let replaced = model.forward(tokens(), &everything)?;
    assert_eq!((replaced.hidden_states.len(), replaced.attentions.len()), (3, 2));

    // A model constructed by hand is patched inside `apply_patches` only.
    let config = LlamaConfig::from_pretrained(folder)?;
    let by_hand = apply_patches(&device, |init| LlamaForCausalLM::new(&config, init))?;
    let plain = LlamaForCausalLM::new(&config, &Init::new(&device));
    assert!(slots::<LlamaAttention, _>(&by_hand)[0].1.implementation::<HalvedAttention>().is_some());
    assert!(slots::<LlamaAttention, _>(&plain)[0].1.implementation::<LlamaAttention>().is_some());

    // Registered patches stay until they are unregistered.
    unregister_patch_mapping(["LlamaAttention"])?;
    let original = LlamaForCausalLM::from_pretrained(folder, &device)?.forward(tokens(), &everything)?;
    let next = |logits: Tensor<3>| logits.slice([0..1, 6..7]).argmax(2).into_scalar::<i64>();
    println!(
        "next token: {} with the originals, {} with half of attention",
        next(original.logits),
        next(replaced.logits)
    );
    Ok(())
}
