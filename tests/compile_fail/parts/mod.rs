//! A model that is right, for cases that are wrong in one thing.
#![allow(dead_code, unused_imports)]

pub use burn::nn::{Linear, LinearConfig};
pub use burn::prelude::*;
pub use burnlens::patching_core::capture::CaptureError;
pub use burnlens::prelude::*;

#[derive(Clone, Debug, Default, ConfigDefaults)]
pub struct Config {
    pub width: usize,
    pub num_layers: usize,
    pub use_cache: bool,
}

#[derive(Module, Debug)]
pub struct Attention {
    proj: Linear,
}

#[module_class]
impl Attention {
    pub fn new(config: &Config, init: &Init) -> Self {
        Self { proj: LinearConfig::new(config.width, config.width).init(init.device()) }
    }
    pub fn forward(&self, hidden_states: Tensor<3>) -> (Tensor<3>, Option<Tensor<4>>) {
        (self.proj.forward(hidden_states), None)
    }
}

#[derive(Module, Debug)]
pub struct Block {
    self_attn: Slot<Attention>,
}

#[module_class]
impl Block {
    pub fn new(config: &Config, init: &Init) -> Self {
        Self { self_attn: Attention::slot(config, init) }
    }
    pub fn forward(&self, hidden_states: Tensor<3>) -> Tensor<3> {
        self.self_attn.forward(hidden_states).0
    }
}

#[derive(ModelOutput, Clone, Debug)]
pub struct Output {
    pub last_hidden_state: Tensor<3>,
    pub hidden_states: Captured<Tensor<3>>,
    pub attentions: Captured<Tensor<4>>,
}
