use super::{BaseModel, Model};
use crate::config::{DecoderConfig, TokenIds};
use crate::error::ForwardError;
use crate::inputs::TextInputs;
use crate::layers::moe::load_balancing_loss;
use crate::layers::{causal_lm_loss, lm_logits, select_positions};
use crate::outputs::{
    BaseModelOutputWithPast, CausalLMOutputWithPast, HiddenStateOutput, LanguageModelOutput, MoeCausalLMOutputWithPast,
    MoeModelOutputWithPast,
};
use burn::nn::Linear;
use burn::tensor::{DType, Int, Tensor};
use patching_core::prelude::*;

/// A language model, which can generate text.
pub trait CausalLM {
    /// What it gives.
    type Output: LanguageModelOutput;

    /// As the model's own `forward`.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, the config names an implementation that is not registered, something that was asked
    /// for cannot be recorded, or a router did not use the experts that the inputs force on it.
    fn forward_causal(&self, inputs: TextInputs, kwargs: &ForwardKwargs) -> Result<Self::Output, ForwardError>;

    /// The tokens that end a text, as the model's config says.
    fn eos_token_id(&self) -> Option<&TokenIds>;

    /// The padding token, as the model's config says.
    fn pad_token_id(&self) -> Option<i64>;
}

/// Runs a base model and a language model head: the base model's output, the logits, and the loss.
fn scored<M: BaseModel>(
    model: &M,
    head: Option<&Linear>,
    mut inputs: TextInputs,
    kwargs: &ForwardKwargs,
) -> Result<(<M as Model>::Output, Tensor<3>, Option<Tensor<1>>), ForwardError> {
    let labels = inputs.labels.take();
    let keep = std::mem::take(&mut inputs.logits_to_keep);
    let base = model.forward_base(inputs, kwargs)?;
    let hidden = select_positions(base.last_hidden_state().clone(), keep)?;
    let logits = lm_logits(head, model.embedding(), hidden);
    let loss = match labels {
        Some(labels) => Some(causal_lm_loss(logits.clone(), labels)?),
        None => None,
    };
    Ok((base, logits, loss))
}

/// Runs a base model and a language model head.
pub(crate) fn forward_causal<M: BaseModel + Model<Output = BaseModelOutputWithPast>>(
    model: &M,
    head: Option<&Linear>,
    inputs: TextInputs,
    kwargs: &ForwardKwargs,
) -> Result<CausalLMOutputWithPast, ForwardError> {
    let (mut base, logits, loss) = scored(model, head, inputs, kwargs)?;
    let mut output = CausalLMOutputWithPast::new(logits);
    output.loss = loss;
    output.cache = base.cache.take();
    base.pass_on(&mut output)?;
    Ok(output)
}

/// Runs a base model with mixtures of experts and a language model head, and computes the loss that balances experts
/// where the router logits of all layers were recorded.
pub(crate) fn forward_moe_causal<M: BaseModel + Model<Output = MoeModelOutputWithPast>>(
    model: &M,
    head: Option<&Linear>,
    inputs: TextInputs,
    kwargs: &ForwardKwargs,
) -> Result<MoeCausalLMOutputWithPast, ForwardError> {
    let mask = inputs.attention_mask.clone();
    let (mut base, logits, loss) = scored(model, head, inputs, kwargs)?;
    let aux_loss = aux_loss(model.config(), &base, mask);
    let mut output = MoeCausalLMOutputWithPast::new(logits);
    output.loss = match (loss, &aux_loss) {
        (Some(loss), Some((aux_loss, coefficient))) => Some(loss + aux_loss.clone() * *coefficient),
        (loss, _) => loss,
    };
    output.aux_loss = aux_loss.map(|(aux_loss, _)| aux_loss);
    output.cache = base.cache.take();
    base.pass_on(&mut output)?;
    Ok(output)
}

/// The loss that balances experts and how much it counts, unless router logits are missing.
fn aux_loss<C: DecoderConfig>(
    config: &C,
    base: &MoeModelOutputWithPast,
    mask: Option<Tensor<2, Int>>,
) -> Option<(Tensor<1>, f64)> {
    let experts = config.experts()?;
    let logits: Vec<Tensor<2>> = base.router_logits.iter().map(|(_, _, logits)| logits.clone()).collect();
    if logits.len() < base.router_logits.len() {
        return None;
    }
    let loss = load_balancing_loss(&logits, experts.top_k, mask)?.cast(DType::F32);
    Some((loss, experts.aux_loss_coef))
}

/// Makes a head that computes the logits of tokens one that continues texts: it has a `forward` and a config with the
/// tokens that end and fill them.
macro_rules! generates_text {
    ($head:ident => $output:ty) => {
        impl $head {
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
            ) -> Result<$crate::generation::GenerateOutput<$output>, $crate::generation::GenerateError> {
                $crate::generation::generate(self, inputs, config, kwargs)
            }
        }

        impl $crate::models::CausalLM for $head {
            type Output = $output;

            fn forward_causal(
                &self,
                inputs: $crate::TextInputs,
                kwargs: &ForwardKwargs,
            ) -> Result<$output, $crate::ForwardError> {
                self.forward(inputs, kwargs)
            }

            fn eos_token_id(&self) -> Option<&$crate::config::TokenIds> {
                patching_core::weights::PreTrainedModel::config(self).eos_token_id.as_ref()
            }

            fn pad_token_id(&self) -> Option<i64> {
                patching_core::weights::PreTrainedModel::config(self).pad_token_id
            }
        }
    };
}
pub(crate) use generates_text;

/// Makes a struct of a `model` and an optional `lm_head` a language model.
macro_rules! causal_lm {
    ($head:ident, $model:ident, $config:ident) => {
        $crate::models::causal_lm!($head, $model, $config, $crate::CausalLMOutputWithPast, forward_causal);
    };
    // one with mixtures of experts
    ($head:ident, $model:ident, $config:ident, experts) => {
        $crate::models::causal_lm!($head, $model, $config, $crate::MoeCausalLMOutputWithPast, forward_moe_causal);
    };
    ($head:ident, $model:ident, $config:ident, $output:ty, $forward:ident) => {
        impl $head {
            /// Fresh parameters.
            pub fn new(config: &$config, init: &Init) -> Self {
                Self { model: $model::new(config, init), lm_head: $crate::layers::new_lm_head(config, init.device()) }
            }

            /// Runs the model and computes logits, `[batch, positions kept, vocabulary]`.
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
                let head = self.lm_head.as_ref();
                $crate::models::$forward(&self.model, head, inputs.into(), kwargs)
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

            fn implied_ties(config: &$config) -> Vec<(String, String)> {
                let pair = || ("lm_head.weight".to_owned(), "model.embed_tokens.weight".to_owned());
                config.tie_word_embeddings.then(pair).into_iter().collect()
            }
        }

        $crate::models::decoder_with_head!($head, $model);
        $crate::models::decoder_class!($head: $output; is_base: false, generates: generate);

        $crate::models::generates_text!($head => $output);
    };
}
pub(crate) use causal_lm;
