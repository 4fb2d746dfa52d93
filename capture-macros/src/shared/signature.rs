//! What macros on functions need to know of a signature.

use super::errors::Errors;
use super::types::{last_ident, readable};
use quote::{ToTokens, format_ident};
use syn::spanned::Spanned;
use syn::{FnArg, Ident, Pat, PatIdent, PatType, Safety, Signature, Type};

/// The type that carries a call's request.
pub(crate) const KWARGS: &str = "ForwardKwargs";

/// An argument other than `self`.
pub(crate) struct Argument<'a> {
    /// Its name; one of ours where it has a pattern instead.
    pub(crate) name: Ident,
    /// The pattern, if that is but a name.
    pub(crate) plain: Option<&'a PatIdent>,
    pub(crate) typed: &'a PatType,
}

impl Argument<'_> {
    pub(crate) fn ty(&self) -> &Type {
        &self.typed.ty
    }
}

pub(crate) fn arguments(sig: &Signature) -> Vec<Argument<'_>> {
    let typed = sig.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(typed) => Some(typed),
        FnArg::Receiver(_) => None,
    });
    typed
        .enumerate()
        .map(|(position, typed)| match &*typed.pat {
            Pat::Ident(pat) => {
                Argument { name: pat.ident.clone(), plain: Some(pat).filter(|pat| pat.subpat.is_none()), typed }
            }
            pat => {
                Argument { name: format_ident!("__capture_argument_{position}", span = pat.span()), plain: None, typed }
            }
        })
        .collect()
}

/// `why` completes "…, because".
pub(crate) fn refuse_qualifiers(sig: &Signature, what: &str, why: &str, errors: &mut Errors) {
    let mut refuse = |tokens: &dyn ToTokens, qualifier: &str| {
        errors.on(tokens.to_token_stream(), format!("{what} cannot be `{qualifier}`: {why}"))
    };
    if let Some(token) = &sig.asyncness {
        refuse(token, "async");
    }
    if let Safety::Unsafe(token) = &sig.safety {
        refuse(token, "unsafe");
    }
    if let Some(abi) = &sig.abi {
        refuse(abi, "extern");
    }
}

/// The argument that carries a call's request.
pub(crate) struct Request {
    pub(crate) name: Ident,
    /// It is a shared reference, which can be used twice.
    pub(crate) is_reference: bool,
}

/// The `ForwardKwargs` among `arguments`: that of the name `chosen`, or the only one. `None` if there is none or the
/// choice is wrong, which is in `errors`.
pub(crate) fn request(
    arguments: &[Argument<'_>],
    chosen: Option<&Ident>,
    this: &str,
    errors: &mut Errors,
) -> Option<Request> {
    let found: Vec<&Argument<'_>> = match chosen {
        Some(name) => {
            let found: Vec<_> =
                arguments.iter().filter(|argument| argument.plain.is_some() && argument.name == *name).collect();
            if found.is_empty() {
                errors.at(
                    name.span(),
                    format!("there is no argument `{name}`: `kwargs` names an argument of this method"),
                );
            }
            found
        }
        None => {
            arguments.iter().filter(|argument| last_ident(argument.ty()).is_some_and(|ident| ident == KWARGS)).collect()
        }
    };
    let first = match found.as_slice() {
        [] => return None,
        [only] => only,
        [first, ..] => {
            let names: Vec<String> =
                found.iter().map(|argument| format!("`#[{this}(kwargs = {})]`", argument.name)).collect();
            errors.on(
                first.typed,
                format!("which of the `{KWARGS}` is the request of this model? write {}", names.join(" or ")),
            );
            return None;
        }
    };
    if first.plain.is_none() {
        errors.on(
            &first.typed.pat,
            format!("give this argument a plain name, such as `kwargs: {}`", readable(first.ty())),
        );
        return None;
    }
    let is_reference = match first.ty() {
        Type::Reference(reference) => {
            if let Some(token) = &reference.mutability {
                errors.on(token, format!("a request is only read: write `{}: &{KWARGS}`", first.name));
            }
            true
        }
        _ => false,
    };
    Some(Request { name: first.name.clone(), is_reference })
}
