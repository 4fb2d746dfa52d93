//! What is merged.

use crate::shared::{Argument, Request};
use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::{Expr, Token};

/// Arguments that are merged wherever they occur.
pub(super) const KNOWN: [&str; 5] =
    ["use_cache", "is_causal", "vision_feature_layer", "vision_feature_select_strategy", "vision_aspect_ratio"];

/// How an argument is merged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    Plain,
    /// Off while training with gradient checkpointing.
    UseCache,
    /// Also part of a request.
    IsCausal,
    /// Only some values exist.
    SelectStrategy,
}

impl Rule {
    pub(super) fn of(name: &Ident) -> Self {
        match name.unraw().to_string().as_str() {
            "use_cache" => Self::UseCache,
            "is_causal" => Self::IsCausal,
            "vision_feature_select_strategy" => Self::SelectStrategy,
            _ => Self::Plain,
        }
    }
}

pub(super) struct Merged {
    pub(super) name: Ident,
    pub(super) rule: Rule,
}

pub(super) struct Merge {
    /// The user's `self`, with its hygiene.
    pub(super) this: Token![self],
    pub(super) config: Option<Expr>,
    pub(super) arguments: Vec<Merged>,
    pub(super) request: Option<Request>,
}

pub(super) fn is_known(argument: &Argument<'_>) -> bool {
    argument.plain.is_some() && KNOWN.iter().any(|known| argument.name.unraw() == known)
}
