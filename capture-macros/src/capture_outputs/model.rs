//! What is understood of a `forward`.

use super::args::Args;
use crate::shared::{Argument, Request, arguments};
use proc_macro2::Span;
use quote::format_ident;
use syn::ext::IdentExt;
use syn::{
    Attribute, Error, Expr, FnArg, Ident, ImplItemFn, Pat, PatIdent, ReturnType, Signature, Token, Type, parse_quote,
};

/// A valid `forward`, taken apart into the method that callers see and the body that it runs.
pub(super) struct Forward {
    /// The user's function, made the body.
    pub(super) body: ImplItemFn,
    /// The user's signature with a name for every argument.
    pub(super) outer: Signature,
    pub(super) vis: syn::Visibility,
    /// Attributes for the callers.
    pub(super) attrs: Vec<Attribute>,
    /// Conditions and lints, which hold for all that is generated.
    pub(super) conditions: Vec<Attribute>,
    /// The user's `self`, with its hygiene.
    pub(super) this: Token![self],
    pub(super) names: Vec<Ident>,
    /// Arguments that are flags: name and key.
    pub(super) flags: Vec<(Ident, String)>,
    pub(super) request: Request,
    pub(super) config: Option<Expr>,
    pub(super) tie: bool,
    pub(super) output: Type,
}

impl Forward {
    pub(super) fn new(mut function: ImplItemFn, args: Args, request: Request) -> syn::Result<Self> {
        let missing = || Error::new_spanned(&function.sig, "a `forward` takes `&self` and returns a `Result`");
        let this = function.sig.receiver().ok_or_else(missing)?.self_token;
        let ReturnType::Type(_, output) = &function.sig.output else { return Err(missing()) };
        let output = (**output).clone();
        let (names, flags) = {
            let arguments = arguments(&function.sig);
            (
                arguments.iter().map(|argument| argument.name.clone()).collect::<Vec<_>>(),
                arguments.iter().filter_map(flag).collect(),
            )
        };
        let outer = outer(&function.sig, &names);
        let (attrs, conditions) = split(&mut function.attrs);
        let vis = std::mem::replace(&mut function.vis, syn::Visibility::Inherited);
        function.sig.ident = format_ident!("__capture_{}_body", outer.ident.unraw(), span = Span::call_site());
        Ok(Self {
            body: function,
            outer,
            vis,
            attrs,
            conditions,
            this,
            names,
            flags,
            request,
            config: args.config,
            tie: args.tie_last_hidden_states,
            output,
        })
    }

    /// A name that belongs to this method.
    pub(super) fn hidden(&self, what: &str) -> Ident {
        format_ident!("__capture_{}_{what}", self.outer.ident.unraw(), span = Span::call_site())
    }

    /// A method beside this one.
    pub(super) fn beside(&self, what: &str) -> Ident {
        format_ident!("{}_{what}", self.outer.ident.unraw(), span = self.outer.ident.span())
    }
}

/// `output_<key>` is a request for `<key>`.
pub(super) fn flag(argument: &Argument<'_>) -> Option<(Ident, String)> {
    argument.plain?;
    let name = argument.name.unraw().to_string();
    let key = name.strip_prefix("output_").filter(|key| !key.is_empty())?;
    Some((argument.name.clone(), key.to_owned()))
}

/// The outer method hands whole values on; the patterns stay with the body.
fn outer(sig: &Signature, names: &[Ident]) -> Signature {
    let mut outer = sig.clone();
    let typed = outer.inputs.iter_mut().filter_map(|input| match input {
        FnArg::Typed(typed) => Some(typed),
        FnArg::Receiver(_) => None,
    });
    for (typed, name) in typed.zip(names) {
        typed.attrs.retain(|attr| attr.path().is_ident("cfg"));
        *typed.pat = Pat::Ident(PatIdent {
            attrs: Vec::new(),
            by_ref: None,
            mutability: None,
            ident: name.clone(),
            subpat: None,
        });
    }
    outer
}

/// Takes out of the user's attributes what is for callers, and what holds for every method. The rest, such as other
/// attribute macros, stays with the body.
fn split(attrs: &mut Vec<Attribute>) -> (Vec<Attribute>, Vec<Attribute>) {
    let (mut callers, mut all) = (Vec::new(), Vec::new());
    let named = |attr: &Attribute, names: &[&str]| names.iter().any(|name| attr.path().is_ident(name));
    attrs.retain_mut(|attr| {
        if named(attr, &["doc", "must_use", "deprecated", "inline"]) {
            callers.push(attr.clone());
            return false;
        }
        if named(attr, &["expect"]) {
            // what is expected happens in one of the methods, not in each
            if let syn::Meta::List(list) = &mut attr.meta {
                let span = list.path.segments.first().map_or_else(Span::call_site, |segment| segment.ident.span());
                let allow = Ident::new("allow", span);
                list.path = parse_quote!(#allow);
            }
        }
        if named(attr, &["cfg", "allow", "warn", "deny"]) {
            all.push(attr.clone());
            return false;
        }
        true
    });
    (callers, all)
}
