use super::{BaseModel, Model};
use crate::config::{DecoderConfig, ModelConfig};
use crate::error::ForwardError;
use crate::inputs::TextInputs;
use crate::layers::{Pooled, classification_loss, last_tokens, linear};
use crate::outputs::{
    BaseModelOutputWithPast, HiddenStateOutput, MoeModelOutputWithPast, MoeSequenceClassifierOutputWithPast,
    SequenceClassifierOutputWithPast,
};
use burn::nn::Linear;
use burn::tensor::Tensor;
use patching_core::prelude::*;

/// Runs a base model and a classifier on what stands for each sequence: the base model's output, the logits, and the
/// loss.
fn scored<M: BaseModel>(
    model: &M,
    score: &Linear,
    mut inputs: TextInputs,
    kwargs: &ForwardKwargs,
) -> Result<(<M as Model>::Output, Tensor<2>, Option<Tensor<1>>), ForwardError> {
    let config = model.config();
    let labels = inputs.labels.take();
    let input_ids = inputs.input_ids.clone();
    let base = model.forward_base(inputs, kwargs)?;
    let by = Pooled { input_ids: input_ids.as_ref(), pad_token_id: config.pad_token_id() };
    let logits = linear(score, last_tokens(base.last_hidden_state().clone(), by)?);
    let loss = match labels {
        Some(labels) => {
            let problem = config.general().problem_type.as_deref();
            Some(classification_loss(logits.clone(), labels, problem)?)
        }
        None => None,
    };
    Ok((base, logits, loss))
}

/// Defines what runs a base model and a classifier: alike but for the types of both outputs.
macro_rules! forward_classifier {
    ($(#[$doc:meta])* $name:ident: $base:ty => $output:ident) => {
        $(#[$doc])*
        pub(crate) fn $name<M: BaseModel + Model<Output = $base>>(
            model: &M,
            score: &Linear,
            inputs: TextInputs,
            kwargs: &ForwardKwargs,
        ) -> Result<$output, ForwardError> {
            let (mut base, logits, loss) = scored(model, score, inputs, kwargs)?;
            let mut output = $output::new(logits);
            output.loss = loss;
            output.cache = base.cache.take();
            base.pass_on(&mut output)?;
            Ok(output)
        }
    };
}

forward_classifier! {
    /// Runs a base model and a classifier.
    forward_classifier: BaseModelOutputWithPast => SequenceClassifierOutputWithPast
}
forward_classifier! {
    /// Runs a base model with mixtures of experts and a classifier.
    forward_moe_classifier: MoeModelOutputWithPast => MoeSequenceClassifierOutputWithPast
}

/// Makes a struct of a `model` and a `score` a classifier of sequences.
macro_rules! sequence_classifier {
    ($head:ident, $model:ident, $config:ident) => {
        $crate::models::sequence_classifier!(
            $head,
            $model,
            $config,
            $crate::SequenceClassifierOutputWithPast,
            forward_classifier
        );
    };
    // one with mixtures of experts
    ($head:ident, $model:ident, $config:ident, experts) => {
        $crate::models::sequence_classifier!(
            $head,
            $model,
            $config,
            $crate::MoeSequenceClassifierOutputWithPast,
            forward_moe_classifier
        );
    };
    ($head:ident, $model:ident, $config:ident, $output:ty, $forward:ident) => {
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
            /// When the inputs do not fit, the config names an implementation that is not registered, something that
            /// was asked for cannot be recorded, or a router did not use the experts that the inputs force on it.
            pub fn forward(
                &self,
                inputs: impl Into<$crate::TextInputs>,
                kwargs: &ForwardKwargs,
            ) -> Result<$output, $crate::ForwardError> {
                $crate::models::$forward(&self.model, &self.score, inputs.into(), kwargs)
            }

            /// Chooses the attention implementation of a live model.
            ///
            /// # Errors
            ///
            /// An unknown name is an error that lists the choices.
            pub fn set_attn_implementation(&mut self, name: &str) -> Result<(), $crate::config::ConfigError> {
                $crate::models::Tower::set_tower_attention(&mut self.model, name)
            }

            /// Chooses the implementation of mixtures of experts of a live model.
            ///
            /// # Errors
            ///
            /// An unknown name is an error that lists the choices; a model without experts refuses every name.
            pub fn set_experts_implementation(&mut self, name: &str) -> Result<(), $crate::config::ConfigError> {
                $crate::models::BaseModel::choose_experts(&mut self.model, name)
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
        $crate::models::decoder_class!($head: $output; is_base: false);
    };
}
pub(crate) use sequence_classifier;
