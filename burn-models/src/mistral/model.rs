use super::{MistralAttention, MistralConfig, MistralDecoderLayer, MistralRMSNorm};
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
    /// Where Mistral's positions become angles.
    MistralRotaryEmbedding,
    MistralConfig
);

/// Mistral without a head.
#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = MistralDecoderLayer, attentions = MistralAttention)]
pub struct MistralModel {
    /// `[vocabulary, hidden]`
    pub embed_tokens: Embedding,
    /// The layers.
    pub layers: Vec<Slot<MistralDecoderLayer>>,
    /// After the last layer.
    pub norm: Slot<MistralRMSNorm>,
    /// Where positions become angles.
    pub rotary_emb: Slot<MistralRotaryEmbedding>,
    #[module(skip)]
    config: MistralConfig,
    recorders: OutputRecorders,
}

impl MistralModel {
    /// Fresh parameters.
    pub fn new(config: &MistralConfig, init: &Init) -> Self {
        let (size, std) = (config.hidden_size, config.initializer_range);
        Self {
            embed_tokens: new_embedding(config.vocab_size, size, std, init.device()),
            layers: (0..config.num_hidden_layers)
                .map(|layer_idx| MistralDecoderLayer::slot(config, layer_idx, init))
                .collect(),
            norm: MistralRMSNorm::slot(size, config.rms_norm_eps, init),
            rotary_emb: MistralRotaryEmbedding::slot(config, init),
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

base_model!(MistralModel, MistralConfig);
