#![allow(non_snake_case, reason = "fields are named as in checkpoints")]

use super::BertConfig;
use crate::layers::{Activation, layer_norm, linear, new_layer_norm, new_linear, tied_logits};
use burn::module::{Initializer, Module, Param};
use burn::nn::{LayerNorm, Linear};
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// What happens to a hidden state before a token is predicted from it.
#[derive(Module, Debug)]
pub struct BertPredictionHeadTransform {
    /// `[hidden, hidden]`
    pub dense: Linear,
    /// Of the result.
    pub LayerNorm: LayerNorm,
    #[module(skip)]
    transform_act_fn: Activation,
}

#[module_class]
impl BertPredictionHeadTransform {
    /// Fresh parameters.
    pub fn new(config: &BertConfig, init: &Init) -> Self {
        let size = config.hidden_size;
        Self {
            dense: new_linear(size, size, true, config.initializer_range, init.device()),
            LayerNorm: new_layer_norm(size, config.layer_norm_eps, init.device()),
            transform_act_fn: config.hidden_act,
        }
    }

    /// `[batch, seq, hidden]` to the same.
    pub fn forward(&self, hidden_states: Tensor<3>) -> Tensor<3> {
        layer_norm(&self.LayerNorm, self.transform_act_fn.forward(linear(&self.dense, hidden_states)))
    }
}

/// What predicts the token at each position.
#[derive(Module, Debug)]
pub struct BertLMPredictionHead {
    /// What comes first.
    pub transform: Slot<BertPredictionHeadTransform>,
    /// `[hidden, vocabulary]`; none where the config ties it to the embedding.
    pub decoder: Option<Linear>,
    /// `[vocabulary]`, added where there is no `decoder`, which has one of its own.
    pub bias: Param<Tensor<1>>,
}

#[module_class]
impl BertLMPredictionHead {
    /// Fresh parameters.
    pub fn new(config: &BertConfig, init: &Init) -> Self {
        let (size, vocabulary) = (config.hidden_size, config.vocab_size);
        let decoder = || new_linear(size, vocabulary, true, config.initializer_range, init.device());
        Self {
            transform: BertPredictionHeadTransform::slot(config, init),
            decoder: (!config.tie_word_embeddings).then(decoder),
            bias: Initializer::Zeros.init([vocabulary], init.device()),
        }
    }

    /// `[batch, seq, hidden]` to `[batch, seq, vocabulary]`; `table` is that of the embeddings, `[vocabulary, hidden]`,
    /// where the config ties it. Without any there is only the bias.
    pub fn forward(&self, hidden_states: Tensor<3>, table: Option<Tensor<2>>) -> Tensor<3> {
        let hidden_states = self.transform.forward(hidden_states);
        let bias = self.bias.val().unsqueeze::<3>();
        match (&self.decoder, table) {
            (Some(decoder), _) => linear(decoder, hidden_states),
            (None, Some(table)) => tied_logits(table, hidden_states) + bias,
            (None, None) => {
                let ([batch, seq, _], [_, _, vocabulary]) = (hidden_states.dims(), bias.dims());
                bias.expand([batch, seq, vocabulary])
            }
        }
    }
}

/// The head of a model that only predicts tokens.
#[derive(Module, Debug)]
pub struct BertOnlyMLMHead {
    /// What predicts tokens.
    pub predictions: Slot<BertLMPredictionHead>,
}

#[module_class]
impl BertOnlyMLMHead {
    /// Fresh parameters.
    pub fn new(config: &BertConfig, init: &Init) -> Self {
        Self { predictions: BertLMPredictionHead::slot(config, init) }
    }

    /// As [`BertLMPredictionHead`].
    pub fn forward(&self, sequence_output: Tensor<3>, table: Option<Tensor<2>>) -> Tensor<3> {
        self.predictions.forward(sequence_output, table)
    }
}

/// The head of a model that only tells whether a text follows another.
#[derive(Module, Debug)]
pub struct BertOnlyNSPHead {
    /// `[hidden, 2]`
    pub seq_relationship: Linear,
}

#[module_class]
impl BertOnlyNSPHead {
    /// Fresh parameters.
    pub fn new(config: &BertConfig, init: &Init) -> Self {
        Self { seq_relationship: new_linear(config.hidden_size, 2, true, config.initializer_range, init.device()) }
    }

    /// `[batch, hidden]` to `[batch, 2]`: that it follows, and that it does not.
    pub fn forward(&self, pooled_output: Tensor<2>) -> Tensor<2> {
        linear(&self.seq_relationship, pooled_output)
    }
}

/// Both heads together.
#[derive(Module, Debug)]
pub struct BertPreTrainingHeads {
    /// What predicts tokens.
    pub predictions: Slot<BertLMPredictionHead>,
    /// `[hidden, 2]`
    pub seq_relationship: Linear,
}

#[module_class]
impl BertPreTrainingHeads {
    /// Fresh parameters.
    pub fn new(config: &BertConfig, init: &Init) -> Self {
        Self {
            predictions: BertLMPredictionHead::slot(config, init),
            seq_relationship: new_linear(config.hidden_size, 2, true, config.initializer_range, init.device()),
        }
    }

    /// `[batch, seq, hidden]` to `[batch, seq, vocabulary]`, as [`BertLMPredictionHead`], and `[batch, hidden]` to
    /// `[batch, 2]`, as [`BertOnlyNSPHead`].
    pub fn forward(
        &self,
        sequence_output: Tensor<3>,
        pooled_output: Tensor<2>,
        table: Option<Tensor<2>>,
    ) -> (Tensor<3>, Tensor<2>) {
        (self.predictions.forward(sequence_output, table), linear(&self.seq_relationship, pooled_output))
    }
}
