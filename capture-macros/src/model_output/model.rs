//! What is understood of an output struct.

use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::{Field, Type, Visibility};

pub(super) struct Output<'a> {
    pub(super) ident: &'a Ident,
    pub(super) vis: &'a Visibility,
    /// In the user's order.
    pub(super) fields: Vec<OutputField<'a>>,
}

pub(super) struct OutputField<'a> {
    pub(super) ident: &'a Ident,
    pub(super) ty: &'a Type,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A recorded key.
    Captured,
    /// May be absent.
    Optional,
    /// An argument of `new`.
    Required,
}

impl<'a> OutputField<'a> {
    pub(super) fn new(field: &'a Field) -> Option<Self> {
        let kind = match crate::shared::last_ident(&field.ty) {
            Some(ident) if ident == "Captured" => Kind::Captured,
            Some(ident) if ident == "Option" => Kind::Optional,
            _ => Kind::Required,
        };
        Some(Self { ident: field.ident.as_ref()?, ty: &field.ty, kind })
    }

    pub(super) fn name(&self) -> String {
        self.ident.unraw().to_string()
    }
}

impl<'a> Output<'a> {
    pub(super) fn of(&self, kind: Kind) -> impl Iterator<Item = &OutputField<'a>> {
        self.fields.iter().filter(move |field| field.kind == kind)
    }

    /// Whether the last of its hidden states can be its last hidden state.
    pub(super) fn can_tie(&self) -> bool {
        self.of(Kind::Captured).any(|field| field.ident == "hidden_states")
            && self.fields.iter().any(|field| field.ident == "last_hidden_state" && field.kind != Kind::Captured)
    }
}
