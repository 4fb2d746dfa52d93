#![allow(non_snake_case, reason = "fields are named as checkpoint keys")]

use super::{T5Config, T5LayerNorm};
use crate::layers::{Activation, linear, new_linear, wide_linear, wide_sum};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// T5's feed-forward block: on normed input, added to it.
#[derive(Module, Debug)]
pub struct T5LayerFF {
    /// The block itself.
    pub DenseReluDense: T5Dense,
    /// Before it.
    pub layer_norm: Slot<T5LayerNorm>,
}

/// What is inside T5's feed-forward block.
#[derive(Module, Debug)]
pub enum T5Dense {
    /// Two linear maps with an activation in between.
    Plain(Slot<T5DenseActDense>),
    /// The same with a gate.
    Gated(Slot<T5DenseGatedActDense>),
}

#[module_class]
impl T5LayerFF {
    /// Fresh parameters.
    pub fn new(config: &T5Config, init: &Init) -> Self {
        Self {
            DenseReluDense: match config.is_gated() {
                true => T5Dense::Gated(T5DenseGatedActDense::slot(config, init)),
                false => T5Dense::Plain(T5DenseActDense::slot(config, init)),
            },
            layer_norm: T5LayerNorm::slot(config.d_model, config.layer_norm_epsilon, init),
        }
    }

    /// `[batch, seq, hidden]` to the same.
    pub fn forward(&self, hidden_states: Tensor<3>) -> Tensor<3> {
        let normed = self.layer_norm.forward(hidden_states.clone());
        let added = match &self.DenseReluDense {
            T5Dense::Plain(dense) => dense.forward(normed),
            T5Dense::Gated(dense) => dense.forward(normed),
        };
        wide_sum(hidden_states, added)
    }
}

/// Two linear maps with an activation in between. Of f16 values, the second gives f32.
#[derive(Module, Debug)]
pub struct T5DenseActDense {
    /// `[hidden, inside]`
    pub wi: Linear,
    /// `[inside, hidden]`
    pub wo: Linear,
    #[module(skip)]
    activation: Activation,
}

#[module_class]
impl T5DenseActDense {
    /// Fresh parameters.
    pub fn new(config: &T5Config, init: &Init) -> Self {
        let [wi, wo] = [into(config, init), out_of(config, init)];
        Self { wi, wo, activation: config.activation() }
    }

    /// `[batch, seq, hidden]` to the same.
    pub fn forward(&self, hidden_states: Tensor<3>) -> Tensor<3> {
        wide_linear(&self.wo, self.activation.forward(linear(&self.wi, hidden_states)))
    }
}

/// The same with a gate: the activation of one linear map times another.
#[derive(Module, Debug)]
pub struct T5DenseGatedActDense {
    /// `[hidden, inside]`
    pub wi_0: Linear,
    /// `[hidden, inside]`
    pub wi_1: Linear,
    /// `[inside, hidden]`
    pub wo: Linear,
    #[module(skip)]
    activation: Activation,
}

#[module_class]
impl T5DenseGatedActDense {
    /// Fresh parameters.
    pub fn new(config: &T5Config, init: &Init) -> Self {
        Self {
            wi_0: into(config, init),
            wi_1: into(config, init),
            wo: out_of(config, init),
            activation: config.activation(),
        }
    }

    /// `[batch, seq, hidden]` to the same.
    pub fn forward(&self, hidden_states: Tensor<3>) -> Tensor<3> {
        let gate = self.activation.forward(linear(&self.wi_0, hidden_states.clone()));
        wide_linear(&self.wo, gate * linear(&self.wi_1, hidden_states))
    }
}

fn into(config: &T5Config, init: &Init) -> Linear {
    new_linear(config.d_model, config.d_ff, false, config.std_of(config.d_model), init.device())
}

fn out_of(config: &T5Config, init: &Init) -> Linear {
    new_linear(config.d_ff, config.d_model, false, config.std_of(config.d_ff), init.device())
}
