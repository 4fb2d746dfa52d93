//! What is understood of a declaration.

use proc_macro2::{Ident, Span};
use syn::ext::IdentExt;
use syn::{ExprPath, Generics, LitBool, LitStr};

/// A base model and what it can record.
pub(super) struct Model<'a> {
    pub(super) ident: &'a Ident,
    pub(super) generics: &'a Generics,
    /// The field of type `OutputRecorders`, if there is exactly one.
    pub(super) recorders: Option<Ident>,
    /// The fields that may hold parameters.
    pub(super) modules: Vec<Ident>,
    pub(super) entries: Vec<Entry>,
}

pub(super) struct Entry {
    pub(super) key: Ident,
    pub(super) targets: Vec<Target>,
}

pub(super) struct Target {
    pub(super) class: Class,
    pub(super) index: Option<(isize, Span)>,
    pub(super) layer_name: Option<LitStr>,
    pub(super) initial: Option<LitBool>,
    pub(super) num_hidden_layers_key: Option<LitStr>,
    /// The whole of it.
    pub(super) span: Span,
}

pub(super) enum Class {
    Path(ExprPath),
    Name(LitStr),
}

impl Target {
    pub(super) fn new(class: Class, span: Span) -> Self {
        Self { class, index: None, layer_name: None, initial: None, num_hidden_layers_key: None, span }
    }
}

impl Entry {
    pub(super) fn key(&self) -> String {
        self.key.unraw().to_string()
    }

    /// The element that is recorded where nothing is said: what a layer returns first are hidden states.
    pub(super) fn default_index(&self) -> isize {
        if self.key().contains("hidden_states") { 0 } else { 1 }
    }
}
