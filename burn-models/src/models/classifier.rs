use super::BaseModel;
use crate::config::DecoderConfig;
use crate::error::ForwardError;
use crate::inputs::TextInputs;
use crate::layers::{Pooled, classification_loss, last_tokens, linear};
use crate::outputs::SequenceClassifierOutputWithPast;
use burn::nn::Linear;
use patching_core::prelude::*;

/// Runs a base model and a classifier on what stands for each sequence.
pub(crate) fn forward_classifier<M: BaseModel>(
    model: &M,
    score: &Linear,
    mut inputs: TextInputs,
    kwargs: &ForwardKwargs,
) -> Result<SequenceClassifierOutputWithPast, ForwardError> {
    let config = model.config();
    let labels = inputs.labels.take();
    let input_ids = inputs.input_ids.clone();
    let mut base = model.forward_base(inputs, kwargs)?;
    let by = Pooled { input_ids: input_ids.as_ref(), pad_token_id: config.pad_token_id() };
    let logits = linear(score, last_tokens(base.last_hidden_state.clone(), by)?);
    let loss = match labels {
        Some(labels) => {
            let problem = config.general().problem_type.as_deref();
            Some(classification_loss(logits.clone(), labels, problem)?)
        }
        None => None,
    };
    let mut output = SequenceClassifierOutputWithPast::new(logits);
    output.loss = loss;
    output.cache = base.cache.take();
    base.pass_on(&mut output)?;
    Ok(output)
}

/// Makes a struct of a `model` and a `score` a classifier of sequences.
macro_rules! sequence_classifier {
    ($head:ident, $model:ident, $config:ident) => {
        impl $head {
            /// Fresh parameters.
            pub fn new(config: &$config, init: &Init) -> Self {
                Self {
                    model: $model::new(config, init),
                    score: $crate::layers::new_linear(
                        config.hidden_size,
                        config.general.num_labels(),
                        false,
                        config.initializer_range,
                        init.device(),
                    ),
                }
            }

            /// Runs the model and scores each sequence by its last token that is not padding, `[batch, labels]`.
            ///
            /// # Errors
            ///
            /// When the inputs do not fit, or something that was asked for cannot be recorded.
            pub fn forward(
                &self,
                inputs: impl Into<$crate::TextInputs>,
                kwargs: &ForwardKwargs,
            ) -> Result<$crate::SequenceClassifierOutputWithPast, $crate::ForwardError> {
                $crate::models::forward_classifier(&self.model, &self.score, inputs.into(), kwargs)
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
        }

        $crate::models::decoder_with_head!($head, $model);
    };
}
pub(crate) use sequence_classifier;
