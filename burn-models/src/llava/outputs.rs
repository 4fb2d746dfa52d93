use crate::layers::Cache;
use crate::outputs::{ImageOutputs, hidden_state_output, language_model_output};
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// What LLaVA gives without a head.
#[derive(Clone, Debug, ModelOutput)]
pub struct LlavaModelOutputWithPast {
    /// The language model's hidden states after the final norm, `[batch, seq, hidden]`.
    pub last_hidden_state: Tensor<3>,
    /// What the language model has seen, if that was to be kept.
    pub cache: Option<Cache>,
    /// The input of the language model's first layer and the output of each, `[batch, seq, hidden]`.
    pub hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer of the language model, `[batch, heads, query, key]`.
    pub attentions: Captured<Tensor<4>>,
    /// What was made of the images, if there were any.
    pub image_outputs: Option<ImageOutputs>,
}

/// What LLaVA gives as a language model.
#[derive(Clone, Debug, ModelOutput)]
pub struct LlavaCausalLMOutputWithPast {
    /// The mean cross entropy of the next tokens, `[1]`, if labels were given.
    pub loss: Option<Tensor<1>>,
    /// The scores of the next token, `[batch, positions kept, vocabulary]`.
    pub logits: Tensor<3>,
    /// What the language model has seen, if that was to be kept.
    pub cache: Option<Cache>,
    /// The input of the language model's first layer and the output of each, `[batch, seq, hidden]`.
    pub hidden_states: Captured<Tensor<3>>,
    /// The attention weights of each layer of the language model, `[batch, heads, query, key]`.
    pub attentions: Captured<Tensor<4>>,
    /// What was made of the images, if there were any.
    pub image_outputs: Option<ImageOutputs>,
}

macro_rules! image_hidden_states {
    ($($output:ident),*) => { $(
        impl $output {
            /// What took the place of image tokens, `[images, tokens, hidden]`, if there were images.
            pub fn image_hidden_states(&self) -> Option<&Tensor<3>> {
                self.image_outputs.as_ref().map(|images| &images.pooler_output)
            }
        }
    )* };
}
image_hidden_states!(LlavaModelOutputWithPast, LlavaCausalLMOutputWithPast);

hidden_state_output!(LlavaModelOutputWithPast);
language_model_output!(LlavaCausalLMOutputWithPast, hidden_states, attentions;);
