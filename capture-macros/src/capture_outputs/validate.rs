//! The rules of `#[capture_outputs]`.

use super::args::Args;
use crate::shared::{Errors, KWARGS, Request, arguments, is_certainly_no_result, readable, refuse_qualifiers, request};
use syn::visit::Visit;
use syn::{Ident, ImplItemFn, ReceiverKind, ReturnType, TypeImplTrait};

pub(super) fn check(function: &ImplItemFn, args: &Args, errors: &mut Errors) -> Option<Request> {
    let sig = &function.sig;
    let what = "a method under `#[capture_outputs]`";
    refuse_qualifiers(
        sig,
        what,
        "what a call records belongs to the thread that runs it, from beginning to end",
        errors,
    );
    if let Some(token) = &sig.constness {
        errors.on(token, format!("{what} cannot be `const`: it records while it runs"));
    }
    match sig.receiver() {
        None => errors
            .at(sig.paren_token.span.join(), "`#[capture_outputs]` belongs on a method of a base model: add `&self`"),
        Some(receiver) if !matches!(receiver.kind, ReceiverKind::Reference(_, _, None)) => {
            errors.on(receiver, "a base model is shared between calls: write `&self`");
        }
        Some(_) => {}
    }
    for argument in arguments(sig) {
        if let Some(condition) =
            argument.typed.attrs.iter().find(|attr| attr.path().is_ident("cfg") || attr.path().is_ident("cfg_attr"))
        {
            errors.on(
                condition,
                format!("an argument of {what} cannot be conditional: it is handed on; make it an `Option`"),
            );
        }
    }
    check_output(function, errors);
    let arguments = arguments(sig);
    let before = errors.is_empty();
    let request = request(&arguments, args.kwargs.as_ref(), "capture_outputs", errors);
    let reported = before != errors.is_empty();
    if request.is_none()
        && args.kwargs.is_none()
        && !reported
        && !arguments
            .iter()
            .any(|argument| crate::shared::last_ident(argument.ty()).is_some_and(|ident| ident == KWARGS))
    {
        errors.at(
            sig.paren_token.span.join(),
            format!("what a call records is said by an argument: add `kwargs: &{KWARGS}`"),
        );
    }
    request
}

fn check_output(function: &ImplItemFn, errors: &mut Errors) {
    let why = "a request that cannot be met is an error";
    match &function.sig.output {
        ReturnType::Default => errors.on(
            &function.sig.ident,
            format!(
                "{why}, and there is nothing to put recorded values into: write `-> Result<MyOutput, CaptureError>`"
            ),
        ),
        ReturnType::Type(_, ty) if is_certainly_no_result(ty) => errors.on(
            ty,
            format!(
                "{why}: write `-> Result<{}, CaptureError>`, or your own error that is `From<CaptureError>`",
                readable(ty)
            ),
        ),
        ReturnType::Type(_, ty) => {
            Named { params: params(function), errors }.visit_type(ty);
        }
    }
}

/// Reports what keeps the output's type from being known.
struct Named<'a> {
    params: Vec<&'a Ident>,
    errors: &'a mut Errors,
}

const KNOWN: &str = "recorded values go into fields of the output, so its type must be known";

impl<'ast> Visit<'ast> for Named<'_> {
    fn visit_type_impl_trait(&mut self, ty: &'ast TypeImplTrait) {
        self.errors.on(ty, format!("{KNOWN}: name it"));
    }
    fn visit_ident(&mut self, ident: &'ast Ident) {
        if self.params.contains(&ident) {
            self.errors.on(ident, format!("{KNOWN}: it cannot depend on `{ident}`"));
        }
    }
}

fn params(function: &ImplItemFn) -> Vec<&Ident> {
    function.sig.generics.type_params().map(|param| &param.ident).collect()
}

/// Whether the output's type can stand in a place of its own.
pub(super) fn is_nameable(function: &ImplItemFn) -> bool {
    let mut errors = Errors::default();
    if let ReturnType::Type(_, ty) = &function.sig.output {
        Named { params: params(function), errors: &mut errors }.visit_type(ty);
    }
    errors.is_empty()
}
