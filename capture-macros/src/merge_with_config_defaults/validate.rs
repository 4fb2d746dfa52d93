//! The rules of `#[merge_with_config_defaults]`.

use super::args::Args;
use super::model::{KNOWN, Merge, Merged, Rule, is_known};
use crate::shared::{
    Argument, Errors, KWARGS, arguments, choices, did_you_mean, is_certainly_no_result, last_ident, readable, request,
};
use syn::{ImplItemFn, ReturnType, Token, Type};

pub(super) fn check(function: &ImplItemFn, args: Args, errors: &mut Errors) -> Merge {
    let sig = &function.sig;
    let this = match sig.receiver() {
        Some(receiver) => receiver.self_token,
        None => {
            errors.at(sig.paren_token.span.join(), "the config belongs to the model: add `&self`");
            <Token![self]>::default()
        }
    };
    let arguments = arguments(sig);
    for name in &args.names {
        if !arguments.iter().any(|argument| argument.plain.is_some() && argument.name == *name) {
            let names: Vec<String> = arguments
                .iter()
                .filter(|argument| argument.plain.is_some())
                .map(|argument| argument.name.to_string())
                .collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            errors.at(
                name.span(),
                format!("this method has no argument `{name}`: {}", did_you_mean(&name.to_string(), &names)),
            );
        }
    }
    let mut merged = Vec::new();
    for argument in &arguments {
        let is_named = argument.plain.is_some() && args.names.contains(&argument.name);
        if !(is_named || is_known(argument)) {
            continue;
        }
        let rule = Rule::of(&argument.name);
        check_argument(argument, rule, &sig.output, errors);
        merged.push(Merged { name: argument.name.clone(), rule });
    }
    let has_kwargs = arguments.iter().any(|argument| last_ident(argument.ty()).is_some_and(|ident| ident == KWARGS));
    let request = request(&arguments, args.kwargs.as_ref(), "merge_with_config_defaults", errors);
    if merged.is_empty() && !has_kwargs && args.names.is_empty() && args.kwargs.is_none() {
        errors.at(
            sig.ident.span(),
            format!("nothing to merge: no argument of this method is a `{KWARGS}` or named {}; name yours, `#[merge_with_config_defaults(my_argument)]`", choices(&KNOWN).replace(" and ", " or ")),
        );
    }
    Merge { this, config: args.config, arguments: merged, request }
}

fn check_argument(argument: &Argument<'_>, rule: Rule, output: &ReturnType, errors: &mut Errors) {
    if last_ident(argument.ty()).is_none_or(|ident| ident != "Option") || matches!(argument.ty(), Type::Reference(_)) {
        let inner = match argument.ty() {
            Type::Reference(reference) => readable(&reference.elem),
            ty => readable(ty),
        };
        let inner = inner.strip_prefix("Option<").and_then(|inner| inner.strip_suffix('>')).unwrap_or(&inner);
        errors.on(
            argument.ty(),
            format!(
                "only what a caller can leave out is taken from the config: write `{}: Option<{inner}>`",
                argument.name
            ),
        );
    }
    if rule == Rule::SelectStrategy {
        let fails = match output {
            ReturnType::Default => false,
            ReturnType::Type(_, ty) => !is_certainly_no_result(ty),
        };
        if !fails {
            errors.at(argument.name.span(), "a select strategy that does not exist is an error: the method returns a `Result` whose error is `From<CaptureError>`");
        }
    }
}
