use super::config::FRAMES;
use super::layer::EPSILON;
use super::positions::sinusoids;
use super::{WhisperAttention, WhisperConfig, WhisperEncoderLayer};
use crate::error::ForwardError;
use crate::inputs::{SpeechInputs, TextInputs};
use crate::layers::{
    Activation, Causality, Extent, LayerContext, Stack, conv1d, layer_norm, new_conv1d, new_layer_norm,
};
use crate::models::base_tower;
use crate::outputs::BaseModelOutput;
use burn::module::Module;
use burn::nn::conv::Conv1d;
use burn::nn::{Embedding, LayerNorm};
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// Whisper's encoder: two convolutions, then layers over half as many positions as there are frames.
#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = WhisperEncoderLayer, attentions = WhisperAttention)]
pub struct WhisperEncoder {
    /// `[hidden, mel bins, 3]`
    pub conv1: Conv1d,
    /// `[hidden, hidden, 3]`, which halves the number of positions.
    pub conv2: Conv1d,
    /// `[positions, hidden]`, which is not trained.
    pub embed_positions: Embedding,
    /// The layers.
    pub layers: Vec<Slot<WhisperEncoderLayer>>,
    /// After the last layer.
    pub layer_norm: LayerNorm,
    #[module(skip)]
    config: WhisperConfig,
    recorders: OutputRecorders,
}

impl WhisperEncoder {
    /// Fresh parameters.
    pub fn new(config: &WhisperConfig, init: &Init) -> Self {
        let (size, device) = (config.d_model, init.device());
        let conv = |inputs, stride| new_conv1d([inputs, size], 3, stride, 1, true, config.init_std, device);
        Self {
            conv1: conv(config.num_mel_bins, 1),
            conv2: conv(size, FRAMES),
            embed_positions: sinusoids(config.max_source_positions, size, device),
            layers: (0..config.encoder_layers).map(|at| WhisperEncoderLayer::slot(config, at, init)).collect(),
            layer_norm: new_layer_norm(size, EPSILON, device),
            config: config.clone(),
            recorders: OutputRecorders::default(),
        }
    }

    /// Runs the encoder; what `kwargs` and the config ask for is recorded.
    ///
    /// # Errors
    ///
    /// When the spectrogram has not exactly as many bands and frames as the model was made for, the config names an
    /// implementation that is not registered, or something that was asked for cannot be recorded.
    #[merge_with_config_defaults]
    #[capture_outputs]
    pub fn forward(
        &self,
        inputs: impl Into<SpeechInputs>,
        kwargs: &ForwardKwargs,
    ) -> Result<BaseModelOutput, ForwardError> {
        let features = self.checked(inputs.into())?;
        let hidden_states = Activation::Gelu.forward(conv1d(&self.conv1, features));
        let hidden_states = Activation::Gelu.forward(conv1d(&self.conv2, hidden_states));
        let mut hidden_states = hidden_states.swap_dims(1, 2) + self.embed_positions.weight.val().unsqueeze();
        // no call makes it causal: there is no mask that could be
        let stack = Stack {
            causality: Causality::NeverCausal,
            ..Stack::encoder(&self.config.general, self.config.encoder_layers)
        };
        let mut context = LayerContext::for_stack(&stack, &Extent::of(&hidden_states), TextInputs::default(), kwargs)?;
        for (layer_idx, layer) in self.layers.iter().enumerate() {
            hidden_states = layer.forward(hidden_states, &mut context);
            context.end_layer(layer_idx)?;
        }
        context.finish()?;
        Ok(BaseModelOutput::new(layer_norm(&self.layer_norm, hidden_states)))
    }

    /// The spectrogram, `[batch, mel bins, frames]`, if it is as large as it has to be.
    fn checked(&self, inputs: SpeechInputs) -> Result<Tensor<3>, ForwardError> {
        const NAME: &str = "input_features";
        if inputs.labels.is_some() {
            let (model, because) = (self.config.general.model_type.clone(), ": the encoder computes no loss");
            return Err(ForwardError::Unused { model, name: "labels", because });
        }
        let features = inputs.input_features;
        let (bins, frames) = (self.config.num_mel_bins, FRAMES * self.config.max_source_positions);
        let dims = features.dims();
        if dims[0] == 0 || dims[1..] != [bins, frames] {
            let expected = format!("[batch, {bins}, {frames}]: mel bins, and frames filled up to the model's length");
            return Err(ForwardError::Shape { name: NAME, found: dims.to_vec(), expected });
        }
        let (found, expected) = (features.dtype(), self.embed_positions.weight.val().dtype());
        if found != expected {
            return Err(ForwardError::DType { name: NAME, found, expected });
        }
        Ok(features)
    }
}

base_tower! {
    WhisperEncoder(WhisperConfig): SpeechInputs => BaseModelOutput;
    prefix: "model.encoder",
    inputs: &["input_features"],
    is_base: false
}
