//! A user's crate that replaces a class of the library, under its name and under a pattern, and records it: there is no
//! line for recording in the replacement. The folder of a Llama is the argument.

use burn::prelude::*;
use burnlens::burn_models::layers::LayerContext;
use burnlens::burn_models::llama::{LlamaAttention, LlamaConfig, LlamaDecoderLayer, LlamaForCausalLM, LlamaMLP};
use burnlens::prelude::*;

/// Attention whose values are what came in, with weights that say so.
#[derive(Module, Debug)]
pub struct NoAttention {
    heads: usize,
}

#[replaces(LlamaAttention)]
impl NoAttention {
    pub fn new(config: &LlamaConfig, _layer_idx: usize, _init: &Init) -> Self {
        Self { heads: config.num_attention_heads }
    }

    pub fn forward(&self, hidden_states: Tensor<3>, _context: &mut LayerContext) -> (Tensor<3>, Option<Tensor<4>>) {
        let [batch, seq, _] = hidden_states.dims();
        let own = Tensor::<2>::eye(seq, &hidden_states.device()).unsqueeze::<4>();
        (hidden_states, Some(own.expand([batch, self.heads, seq, seq])))
    }
}

/// A block that is wrapped as a whole.
#[derive(Module, Debug)]
pub struct Doubled {
    layer: Slot<LlamaDecoderLayer>,
}

#[replaces(LlamaDecoderLayer)]
impl Doubled {
    pub fn new(config: &LlamaConfig, layer_idx: usize, init: &Init) -> Self {
        Self { layer: LlamaDecoderLayer::slot(config, layer_idx, init) }
    }

    pub fn forward(&self, hidden_states: Tensor<3>, context: &mut LayerContext) -> Tensor<3> {
        self.layer.forward(hidden_states, context) * 2.0
    }
}

/// Private, in a private module: a replacement need not be anybody else's business.
mod private {
    use super::*;

    #[derive(Module, Debug)]
    pub(super) struct Plain {
        original: Slot<LlamaMLP>,
    }

    #[replaces(LlamaMLP)]
    impl Plain {
        fn new(config: &LlamaConfig, init: &Init) -> Self {
            Self { original: LlamaMLP::slot(config, init) }
        }

        fn forward(&self, hidden_states: Tensor<3>) -> Tensor<3> {
            self.original.forward(hidden_states)
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("which folder?")?;
    let device = Device::flex();
    let tokens = || Tensor::<2, Int>::from_data([[2_i64, 13, 6, 25]], &device);
    let everything = ForwardKwargs::new().output_hidden_states(true).output_attentions(true);
    let plain = LlamaForCausalLM::from_pretrained(&folder, &device)?.forward(tokens(), &everything)?;

    for key in ["LlamaAttention", "^Llama.*Attention$"] {
        register_patch_mapping([(key, class::<NoAttention>()), ("MLP$", class::<private::Plain>())])?;
        let model = LlamaForCausalLM::from_pretrained(&folder, &device)?;
        let output = model.forward(tokens(), &everything)?;
        assert_eq!(output.hidden_states.len(), plain.hidden_states.len());
        assert_eq!(output.attentions.len(), plain.attentions.len());
        for ((_, path, weights), (_, expected, _)) in output.attentions.iter().zip(plain.attentions.iter()) {
            assert_eq!(path, expected);
            let [_, heads, seq, _] = weights.dims();
            assert_eq!(weights.clone().sum().into_scalar::<f32>(), (heads * seq) as f32, "the replacement's weights");
        }
        unregister_patch_mapping([key, "MLP$"])?;
    }

    register_patch_mapping([("DecoderLayer", class::<Doubled>())])?;
    let unmatched = LlamaForCausalLM::from_pretrained(&folder, &device)?.forward(tokens(), &everything)?;
    assert_eq!(unmatched.logits.into_data(), plain.logits.clone().into_data(), "a name is exact");
    clear_patch_mapping();
    register_patch_mapping([("DecoderLayer$", class::<Doubled>())])?;
    let output = LlamaForCausalLM::from_pretrained(&folder, &device)?.forward(tokens(), &everything)?;
    assert_eq!(output.hidden_states.len(), plain.hidden_states.len());
    assert_eq!(output.attentions.len(), plain.attentions.len());
    let first = |output: &Captured<Tensor<3>>| output.get(1).cloned().ok_or("recorded");
    let doubled = first(&plain.hidden_states)? * 2.0;
    assert_eq!(first(&output.hidden_states)?.into_data(), doubled.into_data());
    Ok(())
}
