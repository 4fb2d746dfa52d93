use super::{ViTAttention, ViTConfig, ViTEmbeddings, ViTLayer, ViTPooler};
use crate::auto::NamedInputs;
use crate::error::ForwardError;
use crate::inputs::PixelInputs;
use crate::layers::{LayerContext, layer_norm, new_layer_norm};
use crate::models::base_tower;
use crate::outputs::BaseModelOutputWithPooling;
use burn::module::Module;
use burn::nn::LayerNorm;
use patching_core::prelude::*;

/// ViT without a head.
#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = ViTLayer, attentions = ViTAttention)]
pub struct ViTModel {
    /// Where images become vectors.
    pub embeddings: Slot<ViTEmbeddings>,
    /// The layers.
    pub layers: Vec<Slot<ViTLayer>>,
    /// After the last layer.
    pub layernorm: LayerNorm,
    /// What makes the pooled output, if there is to be one.
    pub pooler: Option<Slot<ViTPooler>>,
    #[module(skip)]
    config: ViTConfig,
    #[module(skip)]
    hides_patches: bool,
    recorders: OutputRecorders,
}

/// The parts that a ViT may have or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViTParts {
    /// Whether there is a pooled output.
    pub pooler: bool,
    /// Whether patches can be hidden.
    pub mask_token: bool,
}

impl ViTModel {
    /// Fresh parameters: with a pooler, seeing all patches.
    pub fn new(config: &ViTConfig, init: &Init) -> Self {
        Self::with_parts(config, ViTParts { pooler: true, mask_token: false }, init)
    }

    /// Fresh parameters, with some parts or without.
    pub fn with_parts(config: &ViTConfig, parts: ViTParts, init: &Init) -> Self {
        Self {
            embeddings: ViTEmbeddings::slot(config, parts.mask_token, init),
            layers: (0..config.num_hidden_layers).map(|layer_idx| ViTLayer::slot(config, layer_idx, init)).collect(),
            layernorm: new_layer_norm(config.hidden_size, config.layer_norm_eps, init.device()),
            pooler: parts.pooler.then(|| ViTPooler::slot(config, init)),
            config: config.clone(),
            hides_patches: parts.mask_token,
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
        let dtype = self.layernorm.gamma.val().dtype();
        let grid = config.grid();
        let pixel_values = grid.checked(inputs.pixel_values.clone(), inputs.interpolate_pos_encoding, dtype)?;
        let [rows, columns] = grid.of_images(&pixel_values);
        let hidden = inputs.hidden_patches(rows * columns, self.hides_patches, &config.general)?;
        let mut hidden_states = self.embeddings.forward(pixel_values, hidden);
        let mut context = LayerContext::for_encoder(&config.general, &hidden_states, kwargs)?;
        for layer in &self.layers {
            hidden_states = layer.forward(hidden_states, &mut context);
        }
        let last_hidden_state = layer_norm(&self.layernorm, hidden_states);
        let pooled = self.pooler.as_ref().map(|pooler| pooler.forward(last_hidden_state.clone()));
        let mut output = BaseModelOutputWithPooling::new(last_hidden_state);
        output.pooler_output = pooled;
        Ok(output)
    }
}

base_tower! {
    ViTModel(ViTConfig): PixelInputs => BaseModelOutputWithPooling;
    prefix: "vit",
    inputs: NamedInputs::PIXELS_BASE
}
