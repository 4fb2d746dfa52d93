use super::{BaseModel, Decoder};
use crate::error::ForwardError;
use crate::inputs::TextInputs;
use crate::layers::{causal_lm_loss, lm_logits, select_positions};
use crate::outputs::CausalLMOutputWithPast;
use burn::nn::Linear;
use patching_core::prelude::*;

/// A decoder with a language model head, which can generate text.
pub trait CausalLM: Decoder {
    /// As the model's own `forward`.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, or something that was asked for cannot be recorded.
    fn forward_causal(
        &self,
        inputs: TextInputs,
        kwargs: &ForwardKwargs,
    ) -> Result<CausalLMOutputWithPast, ForwardError>;
}

/// Runs a base model and a language model head.
pub(crate) fn forward_causal<M: BaseModel>(
    model: &M,
    head: Option<&Linear>,
    mut inputs: TextInputs,
    kwargs: &ForwardKwargs,
) -> Result<CausalLMOutputWithPast, ForwardError> {
    let labels = inputs.labels.take();
    let keep = std::mem::take(&mut inputs.logits_to_keep);
    let mut base = model.forward_base(inputs, kwargs)?;
    let hidden = select_positions(base.last_hidden_state.clone(), keep)?;
    let logits = lm_logits(head, model.embedding(), hidden);
    let loss = match labels {
        Some(labels) => Some(causal_lm_loss(logits.clone(), labels)?),
        None => None,
    };
    let mut output = CausalLMOutputWithPast::new(logits);
    output.loss = loss;
    output.cache = base.cache.take();
    base.pass_on(&mut output)?;
    Ok(output)
}

/// Makes a struct of a `model` and an optional `lm_head` a language model.
macro_rules! causal_lm {
    ($head:ident, $model:ident, $config:ident) => {
        impl $head {
            /// Fresh parameters.
            pub fn new(config: &$config, init: &Init) -> Self {
                Self { model: $model::new(config, init), lm_head: $crate::layers::new_lm_head(config, init.device()) }
            }

            /// Runs the model and computes logits, `[batch, positions kept, vocabulary]`.
            ///
            /// # Errors
            ///
            /// When the inputs do not fit, or something that was asked for cannot be recorded.
            pub fn forward(
                &self,
                inputs: impl Into<$crate::TextInputs>,
                kwargs: &ForwardKwargs,
            ) -> Result<$crate::CausalLMOutputWithPast, $crate::ForwardError> {
                let head = self.lm_head.as_ref();
                $crate::models::forward_causal(&self.model, head, inputs.into(), kwargs)
            }

            /// Continues token sequences; see [`generate`](fn@crate::generation::generate).
            ///
            /// # Errors
            ///
            /// When the inputs or the generation config do not fit, or a forward pass fails.
            pub fn generate(
                &self,
                inputs: impl Into<$crate::TextInputs>,
                config: &$crate::generation::GenerationConfig,
                kwargs: &ForwardKwargs,
            ) -> Result<$crate::generation::GenerateOutput, $crate::generation::GenerateError> {
                $crate::generation::generate(self, inputs, config, kwargs)
            }

            /// Chooses the attention implementation of a live model.
            ///
            /// # Errors
            ///
            /// An unknown name is an error that lists the choices.
            pub fn set_attn_implementation(&mut self, name: &str) -> Result<(), $crate::config::ConfigError> {
                $crate::models::BaseModel::set_attn_implementation(&mut self.model, name)
            }
        }

        impl patching_core::weights::PreTrainedModel for $head {
            type Config = $config;
            const CLASS_NAME: &'static str = stringify!($head);
            const BASE_MODEL_PREFIX: &'static str = "model";

            fn new(config: &$config, init: &Init) -> Self {
                Self::new(config, init)
            }

            fn config(&self) -> &$config {
                patching_core::weights::PreTrainedModel::config(&self.model)
            }

            fn implied_ties(config: &$config) -> Vec<(String, String)> {
                let pair = || ("lm_head.weight".to_owned(), "model.embed_tokens.weight".to_owned());
                config.tie_word_embeddings.then(pair).into_iter().collect()
            }
        }

        $crate::models::decoder_with_head!($head, $model);

        impl $crate::models::CausalLM for $head {
            fn forward_causal(
                &self,
                inputs: $crate::TextInputs,
                kwargs: &ForwardKwargs,
            ) -> Result<$crate::CausalLMOutputWithPast, $crate::ForwardError> {
                self.forward(inputs, kwargs)
            }
        }
    };
}
pub(crate) use causal_lm;
