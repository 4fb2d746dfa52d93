use crate::layers::Cache;
use crate::{
    BaseModelOutputWithPast, BaseModelOutputWithPastAndCrossAttentions, BaseModelOutputWithPoolingAndCrossAttentions,
    CausalLMOutputWithCrossAttentions, CausalLMOutputWithPast, LanguageModelOutput, MoeCausalLMOutputWithPast,
    MoeModelOutputWithPast, MoeSequenceClassifierOutputWithPast, SequenceClassifierOutput,
    SequenceClassifierOutputWithPast,
};
use burn::tensor::{Int, Tensor};
use patching_core::capture::OutputTuple;
use patching_core::prelude::*;

/// A field that only some outputs have.
macro_rules! if_there {
    ($output:ident.$field:ident: yes) => {
        Some(&$output.$field)
    };
    ($output:ident.$field:ident: no) => {{
        let _ = $output;
        None
    }};
}

/// An enum over the outputs that models of one kind give, with what all have alike. Of each is said whether it has a
/// cache, router values and cross-attentions.
macro_rules! auto_output {
    (
        $(#[$doc:meta])* $auto:ident {
            $($(#[$variant_doc:meta])* $variant:ident($output:ty): cache $cache:ident, routers $routers:ident, cross $cross:ident;)*
        }
        $($field:ident: $ty:ty, $field_doc:literal;)*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        #[allow(clippy::large_enum_variant, reason = "there is one for each call")]
        pub enum $auto {
            $($(#[$variant_doc])* $variant($output),)*
        }

        impl $auto {
            auto_output!(@fields $($variant)*; $($field: $ty, $field_doc;)*);

            /// The raw logits of each router, `[batch * seq, experts]`; `None` without experts.
            pub fn router_logits(&self) -> Option<&Captured<Tensor<2>>> {
                match self { $(Self::$variant(output) => if_there!(output.router_logits: $routers),)* }
            }

            /// How much each chosen expert counts, `[batch * seq, top k]`; `None` without experts.
            pub fn router_scores(&self) -> Option<&Captured<Tensor<2>>> {
                match self { $(Self::$variant(output) => if_there!(output.router_scores: $routers),)* }
            }

            /// The experts chosen, `[batch * seq, top k]`; `None` without experts.
            pub fn router_indices(&self) -> Option<&Captured<Tensor<2, Int>>> {
                match self { $(Self::$variant(output) => if_there!(output.router_indices: $routers),)* }
            }

            /// The weights of attention to what an encoder gave, `[batch, heads, query, source]`; `None` in families that
            /// look at none.
            pub fn cross_attentions(&self) -> Option<&Captured<Tensor<4>>> {
                match self { $(Self::$variant(output) => if_there!(output.cross_attentions: $cross),)* }
            }

            /// What the model has seen, if that was to be kept.
            pub fn cache(&self) -> Option<&Cache> {
                let cache: Option<&Option<Cache>> =
                    match self { $(Self::$variant(output) => if_there!(output.cache: $cache),)* };
                cache.and_then(Option::as_ref)
            }

            /// The fields that are present, in the reference's order.
            pub fn to_tuple(&self) -> OutputTuple {
                match self { $(Self::$variant(output) => output.to_tuple(),)* }
            }
        }

        $(impl From<$output> for $auto {
            fn from(output: $output) -> Self {
                Self::$variant(output)
            }
        })*
    };
    (@fields $($variant:ident)*; ) => {};
    (@fields $($variant:ident)*; $field:ident: $ty:ty, $field_doc:literal; $($rest:tt)*) => {
        #[doc = $field_doc]
        pub fn $field(&self) -> &$ty {
            match self { $(Self::$variant(output) => &output.$field,)* }
        }

        auto_output!(@fields $($variant)*; $($rest)*);
    };
}

auto_output! {
    /// What a text model of any family gives without a head.
    AutoModelOutput {
        /// Of a decoder without experts.
        Dense(BaseModelOutputWithPast): cache yes, routers no, cross no;
        /// Of one with mixtures of experts.
        Moe(MoeModelOutputWithPast): cache yes, routers yes, cross no;
        /// Of one that may look at what an encoder gave.
        CrossAttending(BaseModelOutputWithPastAndCrossAttentions): cache yes, routers no, cross yes;
        /// Of one with a pooler.
        Pooled(BaseModelOutputWithPoolingAndCrossAttentions): cache yes, routers no, cross yes;
    }
    last_hidden_state: Tensor<3>, "The hidden states after the last layer and the final norm, `[batch, seq, hidden]`.";
    hidden_states: Captured<Tensor<3>>, "The input of the first layer and the output of each, `[batch, seq, hidden]`.";
    attentions: Captured<Tensor<4>>, "The attention weights of each layer, `[batch, heads, query, key]`.";
}

auto_output! {
    /// What a language model of any family gives.
    AutoCausalLMOutput {
        /// Of one without experts.
        Dense(CausalLMOutputWithPast): cache yes, routers no, cross no;
        /// Of one with mixtures of experts.
        Moe(MoeCausalLMOutputWithPast): cache yes, routers yes, cross no;
        /// Of one that may look at what an encoder gave.
        CrossAttending(CausalLMOutputWithCrossAttentions): cache yes, routers no, cross yes;
    }
    logits: Tensor<3>, "The scores of the next token, `[batch, positions kept, vocabulary]`.";
    loss: Option<Tensor<1>>, "The loss, `[1]`, if labels were given.";
    hidden_states: Captured<Tensor<3>>, "The input of the first layer and the output of each, `[batch, seq, hidden]`.";
    attentions: Captured<Tensor<4>>, "The attention weights of each layer, `[batch, heads, query, key]`.";
}

auto_output! {
    /// What a classifier of sequences of any family gives.
    AutoSequenceClassifierOutput {
        /// Of one without experts.
        Dense(SequenceClassifierOutputWithPast): cache yes, routers no, cross no;
        /// Of one with mixtures of experts.
        Moe(MoeSequenceClassifierOutputWithPast): cache yes, routers yes, cross no;
        /// Of an encoder, which keeps nothing.
        Encoder(SequenceClassifierOutput): cache no, routers no, cross no;
    }
    logits: Tensor<2>, "The scores of the labels, `[batch, labels]`.";
    loss: Option<Tensor<1>>, "The loss, `[1]`, if labels were given.";
    hidden_states: Captured<Tensor<3>>, "The input of the first layer and the output of each, `[batch, seq, hidden]`.";
    attentions: Captured<Tensor<4>>, "The attention weights of each layer, `[batch, heads, query, key]`.";
}

impl AutoModelOutput {
    /// What stands for a whole sequence, `[batch, hidden]`, if the model has a pooler.
    pub fn pooler_output(&self) -> Option<&Tensor<2>> {
        match self {
            Self::Pooled(output) => output.pooler_output.as_ref(),
            _ => None,
        }
    }
}

impl AutoCausalLMOutput {
    /// How unevenly the experts are used, `[1]`, if there are some and the router logits of all layers were recorded.
    pub fn aux_loss(&self) -> Option<&Tensor<1>> {
        match self {
            Self::Moe(output) => output.aux_loss.as_ref(),
            _ => None,
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
        match self {
            Self::Dense(output) => output.cache.take(),
            Self::Moe(output) => output.cache.take(),
            Self::CrossAttending(output) => output.cache.take(),
        }
    }

    fn as_tuple(&self) -> OutputTuple {
        self.to_tuple()
    }
}
