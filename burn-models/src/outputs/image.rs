use burn::tensor::Tensor;
use patching_core::prelude::*;

/// What a model of texts and images made of its images.
#[derive(Clone, Debug, ModelOutput)]
pub struct ImageOutputs {
    /// The hidden states after the tower's last layer, `[images, seq, hidden]`; none if the tower could stop before it.
    pub last_hidden_state: Option<Tensor<3>>,
    /// What takes the place of image tokens, `[images, tokens, text hidden]`.
    pub pooler_output: Tensor<3>,
    /// The input of the tower's first layer and the output of each, `[images, seq, hidden]`.
    pub hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer of the tower, `[images, heads, query, key]`.
    pub attentions: Captured<Tensor<4>>,
}
