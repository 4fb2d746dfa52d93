use crate::outputs::BaseModelOutputWithPooling;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// What CLIP gives of texts and images.
#[derive(Clone, Debug, ModelOutput)]
pub struct CLIPOutput {
    /// The loss, `[1]`, if it was asked for.
    pub loss: Option<Tensor<1>>,
    /// How alike each image is to each text, `[images, texts]`.
    pub logits_per_image: Tensor<2>,
    /// The same the other way round, `[texts, images]`.
    pub logits_per_text: Tensor<2>,
    /// What texts are compared by, `[texts, projection]`, of length 1.
    pub text_embeds: Tensor<2>,
    /// What images are compared by, `[images, projection]`, of length 1.
    pub image_embeds: Tensor<2>,
    /// What the text tower gave; its pooled output is projected.
    pub text_model_output: BaseModelOutputWithPooling,
    /// What the vision tower gave; its pooled output is projected.
    pub vision_model_output: BaseModelOutputWithPooling,
}

/// What CLIP's text tower gives with its projection.
#[derive(Clone, Debug, ModelOutput)]
pub struct CLIPTextModelOutput {
    /// What texts are compared by, `[texts, projection]`.
    pub text_embeds: Tensor<2>,
    /// The hidden states after the final norm, `[texts, seq, hidden]`.
    pub last_hidden_state: Tensor<3>,
    /// The input of the first layer and the output of each, `[texts, seq, hidden]`.
    pub hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer, `[texts, heads, query, key]`.
    pub attentions: Captured<Tensor<4>>,
}

/// What CLIP's vision tower gives with its projection.
#[derive(Clone, Debug, ModelOutput)]
pub struct CLIPVisionModelOutput {
    /// What images are compared by, `[images, projection]`.
    pub image_embeds: Tensor<2>,
    /// The hidden states after the last layer, `[images, 1 + patches, hidden]`.
    pub last_hidden_state: Tensor<3>,
    /// The input of the first layer and the output of each, `[images, 1 + patches, hidden]`.
    pub hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer, `[images, heads, query, key]`.
    pub attentions: Captured<Tensor<4>>,
}
