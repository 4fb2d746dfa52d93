use super::{CLIPAttention, CLIPEncoder, CLIPEncoderConfig, CLIPEncoderLayer, CLIPVisionConfig, CLIPVisionEmbeddings};
use crate::error::ForwardError;
use crate::inputs::PixelInputs;
use crate::layers::{LayerContext, first_of, layer_norm, new_layer_norm};
use crate::models::base_tower;
use crate::outputs::BaseModelOutputWithPooling;
use burn::module::Module;
use burn::nn::LayerNorm;
use patching_core::prelude::*;

/// CLIP's vision tower without a projection.
#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = CLIPEncoderLayer, attentions = CLIPAttention)]
pub struct CLIPVisionModel {
    /// Where images become vectors.
    pub embeddings: Slot<CLIPVisionEmbeddings>,
    /// Before the first layer; the name is the checkpoint's.
    pub pre_layrnorm: LayerNorm,
    /// The layers.
    pub encoder: CLIPEncoder,
    /// Of what stands for the whole image.
    pub post_layernorm: LayerNorm,
    #[module(skip)]
    config: CLIPVisionConfig,
    recorders: OutputRecorders,
}

impl CLIPVisionModel {
    /// Fresh parameters.
    pub fn new(config: &CLIPVisionConfig, init: &Init) -> Self {
        let norm = || new_layer_norm(config.hidden_size, config.layer_norm_eps, init.device());
        Self {
            embeddings: CLIPVisionEmbeddings::slot(config, init),
            pre_layrnorm: norm(),
            encoder: CLIPEncoder::new(&CLIPEncoderConfig::from(config), init),
            post_layernorm: norm(),
            config: config.clone(),
            recorders: OutputRecorders::default(),
        }
    }

    /// Runs the model; what `kwargs` and the config ask for is recorded.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, or are such that the model has no use for; when the config names an implementation
    /// that is not registered; when something that was asked for cannot be recorded.
    #[merge_with_config_defaults]
    #[capture_outputs(tie_last_hidden_states = false)]
    pub fn forward(
        &self,
        inputs: impl Into<PixelInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<BaseModelOutputWithPooling, ForwardError> {
        let inputs = inputs.into();
        let config = &self.config;
        inputs.refuse_labels(&config.general)?;
        inputs.refuse_masks(&config.general)?;
        let dtype = self.pre_layrnorm.gamma.val().dtype();
        let pixel_values = config.grid().checked(inputs.pixel_values, inputs.interpolate_pos_encoding, dtype)?;
        let embedded = self.embeddings.forward(pixel_values);
        let mut hidden_states = layer_norm(&self.pre_layrnorm, embedded);
        let mut context = LayerContext::for_encoder(&config.general, &hidden_states, kwargs)?;
        for layer in &self.encoder.layers {
            hidden_states = layer.forward(hidden_states, &mut context);
        }
        let whole = first_of(hidden_states.clone());
        let mut output = BaseModelOutputWithPooling::new(hidden_states);
        output.pooler_output = Some(layer_norm(&self.post_layernorm, whole));
        Ok(output)
    }
}

base_tower! {
    CLIPVisionModel(CLIPVisionConfig): PixelInputs => BaseModelOutputWithPooling;
    prefix: "vision_model",
    inputs: &["pixel_values"]
}
