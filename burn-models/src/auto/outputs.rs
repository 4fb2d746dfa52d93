use crate::layers::Cache;
use crate::{
    BaseModelOutputWithPast, CausalLMOutputWithPast, LanguageModelOutput, MoeCausalLMOutputWithPast,
    MoeModelOutputWithPast, MoeSequenceClassifierOutputWithPast, SequenceClassifierOutputWithPast,
};
use burn::tensor::{Int, Tensor};
use patching_core::capture::OutputTuple;
use patching_core::prelude::*;

/// What only models with experts record.
macro_rules! router_values {
    ($($field:ident: $ty:ty, $field_doc:literal;)*) => {$(
        #[doc = $field_doc]
        pub fn $field(&self) -> Option<&Captured<$ty>> {
            match self {
                Self::Dense(_) => None,
                Self::Moe(output) => Some(&output.$field),
            }
        }
    )*};
}

/// An enum over the outputs that models of one kind give, with what all have alike.
macro_rules! auto_output {
    ($(#[$doc:meta])* $auto:ident { $dense:ty, $moe:ty } $($field:ident: $ty:ty, $field_doc:literal;)*) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        #[allow(clippy::large_enum_variant, reason = "there is one for each call")]
        pub enum $auto {
            /// Of one without experts.
            Dense($dense),
            /// Of one with mixtures of experts.
            Moe($moe),
        }

        impl $auto {
            $(
                #[doc = $field_doc]
                pub fn $field(&self) -> &$ty {
                    match self {
                        Self::Dense(output) => &output.$field,
                        Self::Moe(output) => &output.$field,
                    }
                }
            )*

            router_values! {
                router_logits: Tensor<2>, "The raw logits of each router, `[batch * seq, experts]`; `None` without experts.";
                router_scores: Tensor<2>,
                    "How much each chosen expert counts, `[batch * seq, top k]`; `None` without experts.";
                router_indices: Tensor<2, Int>, "The experts chosen, `[batch * seq, top k]`; `None` without experts.";
            }

            /// What the model has seen, if that was to be kept.
            pub fn cache(&self) -> Option<&Cache> {
                match self {
                    Self::Dense(output) => output.cache.as_ref(),
                    Self::Moe(output) => output.cache.as_ref(),
                }
            }

            /// Takes what the model has seen, if that was to be kept.
            pub fn take_cache(&mut self) -> Option<Cache> {
                match self {
                    Self::Dense(output) => output.cache.take(),
                    Self::Moe(output) => output.cache.take(),
                }
            }

            /// The fields that are present, in the reference's order.
            pub fn to_tuple(&self) -> OutputTuple {
                match self {
                    Self::Dense(output) => output.to_tuple(),
                    Self::Moe(output) => output.to_tuple(),
                }
            }
        }

        impl From<$dense> for $auto {
            fn from(output: $dense) -> Self {
                Self::Dense(output)
            }
        }

        impl From<$moe> for $auto {
            fn from(output: $moe) -> Self {
                Self::Moe(output)
            }
        }
    };
}

auto_output! {
    /// What a decoder of any family gives without a head.
    AutoModelOutput { BaseModelOutputWithPast, MoeModelOutputWithPast }
    last_hidden_state: Tensor<3>, "The hidden states after the final norm, `[batch, seq, hidden]`.";
    hidden_states: Captured<Tensor<3>>, "The input of the first layer and the output of each, `[batch, seq, hidden]`.";
    attentions: Captured<Tensor<4>>, "The attention weights of each layer, `[batch, heads, query, key]`.";
}

auto_output! {
    /// What a language model of any family gives.
    AutoCausalLMOutput { CausalLMOutputWithPast, MoeCausalLMOutputWithPast }
    logits: Tensor<3>, "The scores of the next token, `[batch, positions kept, vocabulary]`.";
    loss: Option<Tensor<1>>, "The loss, `[1]`, if labels were given.";
    hidden_states: Captured<Tensor<3>>, "The input of the first layer and the output of each, `[batch, seq, hidden]`.";
    attentions: Captured<Tensor<4>>, "The attention weights of each layer, `[batch, heads, query, key]`.";
}

auto_output! {
    /// What a classifier of sequences of any family gives.
    AutoSequenceClassifierOutput { SequenceClassifierOutputWithPast, MoeSequenceClassifierOutputWithPast }
    logits: Tensor<2>, "The scores of the labels, `[batch, labels]`.";
    loss: Option<Tensor<1>>, "The loss, `[1]`, if labels were given.";
    hidden_states: Captured<Tensor<3>>, "The input of the first layer and the output of each, `[batch, seq, hidden]`.";
    attentions: Captured<Tensor<4>>, "The attention weights of each layer, `[batch, heads, query, key]`.";
}

impl AutoCausalLMOutput {
    /// How unevenly the experts are used, `[1]`, if there are some and the router logits of all layers were recorded.
    pub fn aux_loss(&self) -> Option<&Tensor<1>> {
        match self {
            Self::Dense(_) => None,
            Self::Moe(output) => output.aux_loss.as_ref(),
        }
    }
}

impl LanguageModelOutput for AutoCausalLMOutput {
    fn logits(&self) -> &Tensor<3> {
        self.logits()
    }

    fn loss(&self) -> Option<&Tensor<1>> {
        self.loss().as_ref()
    }

    fn hidden_states(&self) -> &Captured<Tensor<3>> {
        self.hidden_states()
    }

    fn attentions(&self) -> &Captured<Tensor<4>> {
        self.attentions()
    }

    fn take_cache(&mut self) -> Option<Cache> {
        self.take_cache()
    }

    fn as_tuple(&self) -> OutputTuple {
        self.to_tuple()
    }
}
