use super::layer::EPSILON;
use super::{WhisperAttention, WhisperConfig, WhisperDecoderLayer, WhisperPositionalEmbedding};
use crate::error::ForwardError;
use crate::inputs::TextInputs;
use crate::layers::{LayerContext, Stack, Tokens, layer_norm, new_embedding, new_layer_norm};
use crate::models::base_tower;
use crate::outputs::BaseModelOutputWithPastAndCrossAttentions;
use burn::module::Module;
use burn::nn::{Embedding, LayerNorm};
use patching_core::prelude::*;

/// Whisper's decoder, which looks at what the encoder gave.
#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(
    hidden_states = WhisperDecoderLayer,
    attentions = OutputRecorder(WhisperAttention, layer_name = "self_attn", index = 1),
    cross_attentions = OutputRecorder(WhisperAttention, layer_name = "encoder_attn", index = 1),
)]
pub struct WhisperDecoder {
    /// `[vocabulary, hidden]`
    pub embed_tokens: Embedding,
    /// Where tokens stand.
    pub embed_positions: Slot<WhisperPositionalEmbedding>,
    /// The layers.
    pub layers: Vec<Slot<WhisperDecoderLayer>>,
    /// After the last layer.
    pub layer_norm: LayerNorm,
    #[module(skip)]
    pub(super) config: WhisperConfig,
    recorders: OutputRecorders,
}

impl WhisperDecoder {
    /// Fresh parameters.
    pub fn new(config: &WhisperConfig, init: &Init) -> Self {
        let (size, std) = (config.d_model, config.init_std);
        Self {
            embed_tokens: new_embedding(config.vocab_size, size, std, init.device()),
            embed_positions: WhisperPositionalEmbedding::slot(config.max_target_positions, size, std, init),
            layers: (0..config.decoder_layers).map(|at| WhisperDecoderLayer::slot(config, at, init)).collect(),
            layer_norm: new_layer_norm(size, EPSILON, init.device()),
            config: config.clone(),
            recorders: OutputRecorders::default(),
        }
    }

    /// Runs the decoder; what `kwargs` and the config ask for is recorded. Without `encoder_hidden_states` its layers
    /// have no attention to an encoder.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, there are more tokens than positions, the config names an implementation that is not
    /// registered, or something that was asked for cannot be recorded.
    #[merge_with_config_defaults]
    #[capture_outputs]
    pub fn forward(
        &self,
        inputs: impl Into<TextInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<BaseModelOutputWithPastAndCrossAttentions, ForwardError> {
        let mut inputs = inputs.into();
        let config = &self.config;
        if inputs.encoder_attention_mask.is_some() {
            let because = ": silence is no padding";
            let model = config.general.model_type.clone();
            return Err(ForwardError::Unused { model, name: "encoder_attention_mask", because });
        }
        let table = &self.embed_tokens;
        let tokens = Tokens::new(inputs.input_ids.take(), inputs.inputs_embeds.take(), table)?;
        let heads = config.decoder_attention_heads;
        let head_dim = config.d_model / heads.max(1);
        let stack = Stack {
            encoder_size: Some(config.d_model),
            max_positions: Some(config.max_target_positions),
            packs: true,
            ..Stack::decoder(&config.general, config.decoder_layers, [heads, head_dim], config.use_cache)
        };
        let mut context = LayerContext::for_stack(&stack, &tokens.extent(table), inputs, kwargs)?;
        let mut hidden_states = tokens.embed(table) + self.embed_positions.forward(context.position_ids());
        for (layer_idx, layer) in self.layers.iter().enumerate() {
            hidden_states = layer.forward(hidden_states, &mut context);
            context.end_layer(layer_idx)?;
        }
        let mut output = BaseModelOutputWithPastAndCrossAttentions::new(layer_norm(&self.layer_norm, hidden_states));
        output.cache = context.finish()?;
        Ok(output)
    }
}

base_tower! {
    WhisperDecoder(WhisperConfig): TextInputs => BaseModelOutputWithPastAndCrossAttentions;
    prefix: "model.decoder",
    inputs: &["input_ids", "attention_mask", "position_ids", "inputs_embeds", "encoder_hidden_states"],
    is_base: false
}
