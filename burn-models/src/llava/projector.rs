use super::LlavaConfig;
use crate::layers::{Activation, new_linear, plain_mlp};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// What makes something that the language model reads of a feature.
#[derive(Module, Debug)]
pub struct LlavaMultiModalProjector {
    /// `[feature, text hidden]`
    pub linear_1: Linear,
    /// `[text hidden, text hidden]`
    pub linear_2: Linear,
    #[module(skip)]
    activation: Activation,
}

#[module_class]
impl LlavaMultiModalProjector {
    /// Fresh parameters.
    pub fn new(config: &LlavaConfig, init: &Init) -> Self {
        let (hidden, std) = (config.text_config.hidden_size, config.text_config.initializer_range);
        let linear = |inputs| new_linear(inputs, hidden, config.multimodal_projector_bias, std, init.device());
        Self {
            linear_1: linear(config.feature_size()),
            linear_2: linear(hidden),
            activation: config.projector_hidden_act,
        }
    }

    /// `[images, tokens, feature]` to `[images, tokens, text hidden]`.
    pub fn forward(&self, image_features: Tensor<3>) -> Tensor<3> {
        plain_mlp(&self.linear_1, &self.linear_2, self.activation, image_features)
    }
}
