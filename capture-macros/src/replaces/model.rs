//! What is understood of a replacement.

use super::validate::Found;
use proc_macro2::Span;
use syn::{Error, Generics, ItemImpl, Path, Type};

/// A valid replacement.
pub(super) struct Replacement<'a> {
    /// The type, as the block names it.
    pub(super) ty: &'a Type,
    pub(super) generics: &'a Generics,
    /// Where a constructor that does not fit is reported.
    pub(super) new: Span,
    /// Where a `forward` that does not fit is reported.
    pub(super) forward: Span,
    pub(super) classes: Vec<Path>,
}

impl<'a> Replacement<'a> {
    pub(super) fn new(item: &'a ItemImpl, found: &Found<'a>, classes: Vec<Path>) -> syn::Result<Self> {
        // all were found by the rules
        let missing = || Error::new_spanned(&item.self_ty, "a replacement has `new` and `forward`");
        let (new, forward) = found.new.zip(found.forward).ok_or_else(missing)?;
        Ok(Self {
            ty: &item.self_ty,
            generics: &item.generics,
            new: new.sig.ident.span(),
            forward: forward.sig.ident.span(),
            classes,
        })
    }
}
