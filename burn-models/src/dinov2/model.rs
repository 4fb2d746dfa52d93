use super::embeddings::are_as_trained;
use super::{Dinov2Attention, Dinov2Config, Dinov2Embeddings, Dinov2Layer};
use crate::auto::NamedInputs;
use crate::error::ForwardError;
use crate::inputs::PixelInputs;
use crate::layers::{LayerContext, first_of, layer_norm, new_layer_norm};
use crate::models::base_tower;
use crate::outputs::BaseModelOutputWithPooling;
use burn::module::Module;
use burn::nn::LayerNorm;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// DINOv2 without a head.
#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = Dinov2Layer, attentions = Dinov2Attention)]
pub struct Dinov2Model {
    /// Where images become vectors.
    pub embeddings: Slot<Dinov2Embeddings>,
    /// The layers.
    pub encoder: Dinov2Encoder,
    /// After the last layer.
    pub layernorm: LayerNorm,
    #[module(skip)]
    config: Dinov2Config,
    recorders: OutputRecorders,
}

/// The layers, one after the other; the model's own `forward` goes through them, so that it can stop early.
#[derive(Module, Debug)]
pub struct Dinov2Encoder {
    /// The layers.
    pub layer: Vec<Slot<Dinov2Layer>>,
}

impl Dinov2Encoder {
    /// Fresh parameters.
    pub fn new(config: &Dinov2Config, init: &Init) -> Self {
        let layer = |layer_idx| Dinov2Layer::slot(config, layer_idx, init);
        Self { layer: (0..config.num_hidden_layers).map(layer).collect() }
    }
}

impl Dinov2Model {
    /// Fresh parameters.
    pub fn new(config: &Dinov2Config, init: &Init) -> Self {
        Self {
            embeddings: Dinov2Embeddings::slot(config, init),
            encoder: Dinov2Encoder::new(config, init),
            layernorm: new_layer_norm(config.hidden_size, config.layer_norm_eps, init.device()),
            config: config.clone(),
            recorders: OutputRecorders::default(),
        }
    }

    /// Runs the model on images of any size; what `kwargs` and the config ask for is recorded.
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
        let pixel_values = self.checked(inputs.pixel_values.clone())?;
        let [rows, columns] = config.grid().of_images(&pixel_values);
        let hidden = inputs.hidden_patches(rows * columns, config.use_mask_token, &config.general)?;
        let mut hidden_states = self.embeddings.forward(pixel_values, hidden);
        let mut context = LayerContext::for_encoder(&config.general, &hidden_states, kwargs)?;
        for layer in &self.encoder.layer {
            hidden_states = layer.forward(hidden_states, &mut context);
        }
        let last_hidden_state = layer_norm(&self.layernorm, hidden_states);
        let whole = first_of(last_hidden_state.clone());
        let mut output = BaseModelOutputWithPooling::new(last_hidden_state);
        output.pooler_output = Some(whole);
        Ok(output)
    }

    /// Images of which there is at least one patch, and which the positions can be stretched to.
    fn checked(&self, pixel_values: Tensor<4>) -> Result<Tensor<4>, ForwardError> {
        let (grid, dtype) = (self.config.grid(), self.layernorm.gamma.val().dtype());
        let pixel_values = grid.checked(pixel_values, true, dtype)?;
        let ([_, _, height, width], patches) = (pixel_values.dims(), grid.patches());
        if are_as_trained(&grid, [height, width]) || patches.isqrt().pow(2) == patches {
            return Ok(pixel_values);
        }
        let expected = format!("as high as wide, of {patches} patches: that many positions are not those of a square");
        Err(ForwardError::Shape { name: "pixel_values", found: pixel_values.dims().to_vec(), expected })
    }
}

base_tower! {
    Dinov2Model(Dinov2Config): PixelInputs => BaseModelOutputWithPooling;
    prefix: "dinov2",
    inputs: NamedInputs::PIXELS_BASE
}
