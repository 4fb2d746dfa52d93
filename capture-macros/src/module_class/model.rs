//! What is understood of a module class.

use crate::shared::{Argument, arguments, last_ident, without_self};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{
    Attribute, Error, GenericParam, Ident, ImplItemFn, ItemImpl, Lifetime, Path, ReceiverKind, ReturnType, Type,
    Visibility,
};

/// The functions of a class that are there, whether or not they are right.
pub(super) struct Found<'a> {
    pub(super) new: Option<&'a ImplItemFn>,
    pub(super) forward: Option<&'a ImplItemFn>,
}

/// A valid class.
pub(super) struct Class {
    /// The path of the struct, as the block names it.
    pub(super) path: TokenStream,
    pub(super) ident: Ident,
    /// Conditions of the block, which hold for all that is generated.
    pub(super) conditions: Vec<Attribute>,
    pub(super) new: Function,
    /// The argument of `new` that is the `Init`.
    pub(super) init: Ident,
    pub(super) forward: Function,
}

/// `new` or `forward`, taken apart.
pub(super) struct Function {
    pub(super) ident: Ident,
    pub(super) vis: Visibility,
    /// What is said about it to its callers.
    pub(super) docs: Vec<Attribute>,
    pub(super) generics: TokenStream,
    /// `for<'a>` if it has lifetimes.
    pub(super) binder: TokenStream,
    /// The lifetime of `&self`, if it is named.
    pub(super) receiver: Option<Lifetime>,
    pub(super) names: Vec<Ident>,
    /// Without `Self`.
    pub(super) types: Vec<TokenStream>,
    /// Without `Self`.
    pub(super) output: TokenStream,
}

impl Class {
    pub(super) fn new(item: &ItemImpl, found: &Found<'_>) -> syn::Result<Self> {
        // both were found by the rules
        let missing = || Error::new_spanned(&item.self_ty, "a module class has `new` and `forward`");
        let (new, forward) = found.new.zip(found.forward).ok_or_else(missing)?;
        let path = class_path(item).ok_or_else(missing)?;
        let ident = path.segments.last().map(|segment| segment.ident.clone()).ok_or_else(missing)?;
        let init = inits(&arguments(&new.sig)).first().map(|init| init.name.clone()).ok_or_else(missing)?;
        let path = path.to_token_stream();
        let conditions = item.attrs.iter().filter(|attr| attr.path().is_ident("cfg")).cloned().collect();
        let (new, forward) = (Function::new(new, &path), Function::new(forward, &path));
        Ok(Self { path, ident, conditions, new, init, forward })
    }
}

impl Function {
    fn new(function: &ImplItemFn, class: &TokenStream) -> Self {
        let sig = &function.sig;
        let arguments = arguments(sig);
        let lifetimes: Vec<_> =
            sig.generics.params.iter().filter(|param| matches!(param, GenericParam::Lifetime(_))).collect();
        let output = match &sig.output {
            ReturnType::Default => quote!(()),
            ReturnType::Type(_, ty) => without_self(ty.to_token_stream(), class),
        };
        let receiver = sig.receiver().and_then(|receiver| match &receiver.kind {
            ReceiverKind::Reference(_, lifetime, _) => lifetime.clone(),
            _ => None,
        });
        Self {
            ident: sig.ident.clone(),
            vis: function.vis.clone(),
            docs: function
                .attrs
                .iter()
                .filter(|attr| ["doc", "deprecated", "must_use"].iter().any(|name| attr.path().is_ident(name)))
                .cloned()
                .collect(),
            generics: if lifetimes.is_empty() { TokenStream::new() } else { quote!(<#(#lifetimes),*>) },
            binder: if lifetimes.is_empty() { TokenStream::new() } else { quote!(for<#(#lifetimes),*>) },
            receiver,
            names: arguments.iter().map(|argument| argument.name.clone()).collect(),
            types: arguments.iter().map(|argument| without_self(argument.ty().to_token_stream(), class)).collect(),
            output,
        }
    }
}

/// The path of the struct that a block is for.
pub(super) fn class_path(item: &ItemImpl) -> Option<&Path> {
    fn path(ty: &Type) -> Option<&Path> {
        match ty {
            Type::Paren(paren) => path(&paren.elem),
            Type::Group(group) => path(&group.elem),
            Type::Path(path) if path.qself.is_none() => Some(&path.path),
            _ => None,
        }
    }
    path(&item.self_ty)
}

/// The arguments that are an `Init`.
pub(super) fn inits<'a>(arguments: &'a [Argument<'a>]) -> Vec<&'a Argument<'a>> {
    arguments.iter().filter(|argument| last_ident(argument.ty()).is_some_and(|ident| ident == "Init")).collect()
}
