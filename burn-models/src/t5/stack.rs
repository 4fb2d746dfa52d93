use super::{T5Block, T5Config, T5LayerCrossAttention, T5LayerSelfAttention};
use crate::error::ForwardError;
use crate::inputs::TextInputs;
use crate::layers::{
    Causality, Extent, LayerContext, Stack, embedded, float_dtype_of, given_embeds, new_embedding, rms_norm_class,
};
use crate::models::tower;
use crate::outputs::BaseModelOutputWithPastAndCrossAttentions;
use burn::module::Module;
use burn::nn::Embedding;
use burn::tensor::Tensor;
use patching_core::prelude::*;

rms_norm_class!(
    /// T5's norm.
    T5LayerNorm
);

/// T5's layers, as encoder or as decoder, and the norm after them.
#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(
    hidden_states = OutputRecorder(T5Block, index = 0),
    attentions = OutputRecorder(T5LayerSelfAttention, index = -1),
    cross_attentions = OutputRecorder(T5LayerCrossAttention, index = -1),
)]
pub struct T5Stack {
    /// `[vocabulary, hidden]`; none where tokens are embedded by the model around.
    pub embed_tokens: Option<Embedding>,
    /// The layers.
    pub block: Vec<Slot<T5Block>>,
    /// After the last layer.
    pub final_layer_norm: Slot<T5LayerNorm>,
    #[module(skip)]
    config: T5Config,
    recorders: OutputRecorders,
}

impl T5Stack {
    /// Fresh parameters; `embeds` says whether it has an embedding of its own.
    pub fn new(config: &T5Config, embeds: bool, init: &Init) -> Self {
        let table = || new_embedding(config.vocab_size, config.d_model, config.initializer_factor, init.device());
        Self {
            embed_tokens: embeds.then(table),
            block: (0..config.num_layers)
                .map(|layer_idx| T5Block::slot(config, layer_idx == 0, layer_idx, init))
                .collect(),
            final_layer_norm: T5LayerNorm::slot(config.d_model, config.layer_norm_epsilon, init),
            config: config.clone(),
            recorders: OutputRecorders::default(),
        }
    }

    /// Runs the layers; what `kwargs` and the config ask for is recorded.
    ///
    /// Inside a model that embeds tokens, it is to be given embeddings, in the type of the model's weights.
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
    ) -> Result<BaseModelOutputWithPastAndCrossAttentions, ForwardError> {
        let (mut hidden_states, mut context) = self.begin(inputs.into(), kwargs)?;
        let mut position_bias = None;
        for block in &self.block {
            (hidden_states, position_bias) = block.forward(hidden_states, position_bias, &mut context);
        }
        let mut output = BaseModelOutputWithPastAndCrossAttentions::new(self.final_layer_norm.forward(hidden_states));
        output.cache = context.finish()?;
        Ok(output)
    }

    /// The embeddings, and what the layers need besides.
    fn begin(&self, inputs: TextInputs, kwargs: &ForwardKwargs) -> Result<(Tensor<3>, LayerContext), ForwardError> {
        let config = &self.config;
        if inputs.position_ids.is_some() {
            let because = ": it sees positions by their distance";
            return Err(ForwardError::Unused { model: T5Config::MODEL_TYPE.to_owned(), name: "position_ids", because });
        }
        let mut inputs = match &self.embed_tokens {
            Some(table) => embedded(inputs, table)?,
            None => inputs,
        };
        let embeds = inputs.inputs_embeds.take();
        let embeds = given_embeds(inputs.input_ids.take(), embeds, config.d_model, T5Config::MODEL_TYPE)?;
        let (found, expected) = (embeds.dtype(), float_dtype_of(&self.final_layer_norm));
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            return Err(ForwardError::DType { name: "inputs_embeds", found, expected });
        }
        let stack = match config.is_decoder {
            true => Stack {
                encoder_size: Some(config.d_model),
                ..Stack::decoder(&config.general, config.num_layers, [config.num_heads, config.d_kv], config.use_cache)
            },
            false => Stack { causality: Causality::NeverCausal, ..Stack::encoder(&config.general, config.num_layers) },
        };
        let context = LayerContext::for_stack(&stack, &Extent::of(&embeds), inputs, kwargs)?;
        Ok((embeds, context))
    }
}

tower!(T5Stack: TextInputs => BaseModelOutputWithPastAndCrossAttentions);
