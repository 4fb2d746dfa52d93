use super::layouts::layouts;
use super::{GPT2Attention, GPT2Block, GPT2Config};
use crate::auto::NamedInputs;
use crate::layers::{LayerContext, Tokens, checked_indices, layer_norm, new_embedding, new_layer_norm};
use crate::models::base_tower;
use crate::{BaseModelOutputWithPastAndCrossAttentions, ForwardError, TextInputs};
use burn::module::Module;
use burn::nn::{Embedding, LayerNorm};
use burn::tensor::module::embedding;
use patching_core::prelude::*;
use patching_core::weights::LayoutRules;

/// GPT-2 without a head.
#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(
    hidden_states = GPT2Block,
    attentions = OutputRecorder(GPT2Attention, layer_name = "attn", index = 1),
    cross_attentions = OutputRecorder(GPT2Attention, layer_name = "crossattention", index = 1),
)]
pub struct GPT2Model {
    /// `[vocabulary, hidden]`
    pub wte: Embedding,
    /// `[positions, hidden]`
    pub wpe: Embedding,
    /// The layers.
    pub h: Vec<Slot<GPT2Block>>,
    /// After the last layer.
    pub ln_f: LayerNorm,
    #[module(skip)]
    config: GPT2Config,
    recorders: OutputRecorders,
}

impl GPT2Model {
    /// Fresh parameters.
    pub fn new(config: &GPT2Config, init: &Init) -> Self {
        let table = |rows| new_embedding(rows, config.n_embd, config.initializer_range, init.device());
        Self {
            wte: table(config.vocab_size),
            wpe: table(config.n_positions),
            h: (0..config.n_layer).map(|layer_idx| GPT2Block::slot(config, layer_idx, init)).collect(),
            ln_f: new_layer_norm(config.n_embd, config.layer_norm_epsilon, init.device()),
            config: config.clone(),
            recorders: OutputRecorders::default(),
        }
    }

    /// Runs the model; what `kwargs` and the config ask for is recorded. Token types are looked up among the tokens.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, or something that was asked
    /// for cannot be recorded.
    #[merge_with_config_defaults]
    #[capture_outputs]
    pub fn forward(
        &self,
        inputs: impl Into<TextInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<BaseModelOutputWithPastAndCrossAttentions, ForwardError> {
        let (mut inputs, config) = (inputs.into(), &self.config);
        let tokens = Tokens::new(inputs.input_ids.take(), inputs.inputs_embeds.take(), &self.wte)?;
        let extent = tokens.extent(&self.wte);
        let types = inputs.token_type_ids.take();
        let types = types.map(|types| checked_indices("token_type_ids", config.vocab_size, types, &extent));
        let types = types.transpose()?;
        let mut context = LayerContext::for_stack(&config.stack(), &extent, inputs, kwargs)?;
        let positions = embedding(self.wpe.weight.val(), context.position_ids());
        let mut hidden_states = tokens.embed(&self.wte) + positions;
        if let Some(types) = types {
            hidden_states = hidden_states + embedding(self.wte.weight.val(), types);
        }
        for (layer_idx, block) in self.h.iter().enumerate() {
            hidden_states = block.forward(hidden_states, &mut context);
            context.end_layer(layer_idx)?;
        }
        let mut output = BaseModelOutputWithPastAndCrossAttentions::new(layer_norm(&self.ln_f, hidden_states));
        output.cache = context.finish()?;
        Ok(output)
    }
}

base_tower! {
    GPT2Model(GPT2Config): TextInputs => BaseModelOutputWithPastAndCrossAttentions;
    prefix: "transformer",
    inputs: NamedInputs::TEXT_WITH_TYPES_BASE,
    pretrained: {
        fn layouts(_config: &GPT2Config) -> LayoutRules {
            layouts()
        }
    }
}
