use super::{Qwen3Attention, Qwen3Config, Qwen3DecoderLayer, Qwen3RMSNorm};
use crate::error::ForwardError;
use crate::inputs::TextInputs;
use crate::layers::{LayerContext, new_embedding, rotary_class};
use crate::models::base_model;
use crate::outputs::BaseModelOutputWithPast;
use burn::module::Module;
use burn::nn::Embedding;
use patching_core::capture::ForwardKwargs;
use patching_core::prelude::*;

rotary_class!(
    /// Where Qwen3's positions become angles.
    Qwen3RotaryEmbedding,
    Qwen3Config
);

/// Qwen3 without a head.
#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = Qwen3DecoderLayer, attentions = Qwen3Attention)]
pub struct Qwen3Model {
    /// `[vocabulary, hidden]`
    pub embed_tokens: Embedding,
    /// The layers.
    pub layers: Vec<Slot<Qwen3DecoderLayer>>,
    /// After the last layer.
    pub norm: Slot<Qwen3RMSNorm>,
    /// Where positions become angles.
    pub rotary_emb: Slot<Qwen3RotaryEmbedding>,
    #[module(skip)]
    config: Qwen3Config,
    recorders: OutputRecorders,
}

impl Qwen3Model {
    /// Fresh parameters.
    pub fn new(config: &Qwen3Config, init: &Init) -> Self {
        let (size, std) = (config.hidden_size, config.initializer_range);
        Self {
            embed_tokens: new_embedding(config.vocab_size, size, std, init.device()),
            layers: (0..config.num_hidden_layers)
                .map(|layer_idx| Qwen3DecoderLayer::slot(config, layer_idx, init))
                .collect(),
            norm: Qwen3RMSNorm::slot(size, config.rms_norm_eps, init),
            rotary_emb: Qwen3RotaryEmbedding::slot(config, init),
            config: config.clone(),
            recorders: OutputRecorders::default(),
        }
    }

    /// Runs the model; what `kwargs` and the config ask for is recorded.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, or something that was
    /// asked for cannot be recorded.
    #[merge_with_config_defaults]
    #[capture_outputs]
    pub fn forward(
        &self,
        inputs: impl Into<TextInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<BaseModelOutputWithPast, ForwardError> {
        let (mut hidden_states, mut context) =
            LayerContext::for_decoder(&self.config, &self.embed_tokens, inputs.into(), kwargs)?;
        let dtype = hidden_states.dtype();
        context.set_rotary(self.rotary_emb.forward(context.position_ids(), dtype));
        for (layer_idx, layer) in self.layers.iter().enumerate() {
            hidden_states = layer.forward(hidden_states, &mut context);
            context.end_layer(layer_idx)?;
        }
        let mut output = BaseModelOutputWithPast::new(self.norm.forward(hidden_states));
        output.cache = context.finish()?;
        Ok(output)
    }
}

base_model!(Qwen3Model, Qwen3Config);
