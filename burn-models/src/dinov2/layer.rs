use super::{Dinov2Attention, Dinov2Config, Dinov2FeedForward};
use crate::layers::{LayerContext, layer_norm, new_layer_norm};
use burn::module::{Initializer, Module, Param};
use burn::nn::LayerNorm;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// Scales each channel of what a layer adds.
#[derive(Module, Debug)]
pub struct Dinov2LayerScale {
    /// `[hidden]`
    pub lambda1: Param<Tensor<1>>,
}

#[module_class]
impl Dinov2LayerScale {
    /// Each channel by `layerscale_value`.
    pub fn new(config: &Dinov2Config, init: &Init) -> Self {
        let constant = Initializer::Constant { value: config.layerscale_value };
        Self { lambda1: constant.init([config.hidden_size], init.device()) }
    }

    /// `[batch, seq, hidden]` to the same.
    pub fn forward(&self, hidden_states: Tensor<3>) -> Tensor<3> {
        hidden_states * self.lambda1.val().unsqueeze()
    }
}

/// Where the reference leaves out in training what a layer adds to some images; outside of that it changes nothing.
#[derive(Module, Debug)]
pub struct Dinov2DropPath {}

#[module_class]
impl Dinov2DropPath {
    /// No parameters.
    pub fn new(_config: &Dinov2Config, _init: &Init) -> Self {
        Self {}
    }

    /// `[batch, seq, hidden]`, as it is.
    pub fn forward(&self, hidden_states: Tensor<3>) -> Tensor<3> {
        hidden_states
    }
}

/// One of DINOv2's layers: attention, then the feed-forward block, each on normed input, scaled, and added to it.
#[derive(Module, Debug)]
pub struct Dinov2Layer {
    /// Before attention.
    pub norm1: LayerNorm,
    /// Attention.
    pub attention: Slot<Dinov2Attention>,
    /// Of what attention adds.
    pub layer_scale1: Slot<Dinov2LayerScale>,
    /// Of both, if the config has a `drop_path_rate`.
    pub drop_path: Option<Slot<Dinov2DropPath>>,
    /// Before the feed-forward block.
    pub norm2: LayerNorm,
    /// The feed-forward block.
    pub mlp: Dinov2FeedForward,
    /// Of what the feed-forward block adds.
    pub layer_scale2: Slot<Dinov2LayerScale>,
}

#[module_class]
impl Dinov2Layer {
    /// Fresh parameters for layer `layer_idx`.
    pub fn new(config: &Dinov2Config, layer_idx: usize, init: &Init) -> Self {
        let norm = || new_layer_norm(config.hidden_size, config.layer_norm_eps, init.device());
        Self {
            norm1: norm(),
            attention: Dinov2Attention::slot(config, layer_idx, init),
            layer_scale1: Dinov2LayerScale::slot(config, init),
            drop_path: (config.drop_path_rate > 0.0).then(|| Dinov2DropPath::slot(config, init)),
            norm2: norm(),
            mlp: Dinov2FeedForward::new(config, init),
            layer_scale2: Dinov2LayerScale::slot(config, init),
        }
    }

    /// `[batch, seq, hidden]` to the same.
    pub fn forward(&self, hidden_states: Tensor<3>, context: &mut LayerContext) -> Tensor<3> {
        let normed = layer_norm(&self.norm1, hidden_states.clone());
        let (attended, _) = self.attention.forward(normed, context);
        let hidden_states = self.kept(self.layer_scale1.forward(attended)) + hidden_states;
        let normed = layer_norm(&self.norm2, hidden_states.clone());
        self.kept(self.layer_scale2.forward(self.mlp.forward(normed))) + hidden_states
    }
}

impl Dinov2Layer {
    fn kept(&self, added: Tensor<3>) -> Tensor<3> {
        match &self.drop_path {
            Some(drop_path) => drop_path.forward(added),
            None => added,
        }
    }
}
