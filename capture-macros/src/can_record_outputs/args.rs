//! Reads `#[can_record_outputs(key = target, …)]`, whose keys are the user's own.

use super::model::{Class, Entry, Target};
use crate::shared::{Errors, did_you_mean, readable};
use proc_macro2::Ident;
use quote::ToTokens;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Expr, ExprCall, Lit, LitBool, LitStr, Token, UnOp};

const TARGETS: &str = "a module class, the name of one in quotes, `OutputRecorder(…)`, or a list of those in brackets";
const ARGUMENTS: [&str; 4] = ["index", "layer_name", "capture_initial_hidden_state", "num_hidden_layers_key"];

struct RawEntry {
    key: Ident,
    value: Expr,
}

impl Parse for RawEntry {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let key: Ident = input.parse().map_err(|error| {
            syn::Error::new(error.span(), "expected `key = …`, where `key` is a field of the output struct")
        })?;
        input
            .parse::<Token![=]>()
            .map_err(|error| syn::Error::new(error.span(), format!("expected `{key} = …`: {TARGETS}")))?;
        let value = input.parse().map_err(|error| syn::Error::new(error.span(), format!("expected {TARGETS}")))?;
        Ok(Self { key, value })
    }
}

/// Everything that is understood; what is not is in `errors`.
pub(super) fn parse(attrs: &[Attribute], errors: &mut Errors) -> Vec<Entry> {
    let mut entries = Vec::new();
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("can_record_outputs")) {
        if matches!(attr.meta, syn::Meta::Path(_)) {
            continue; // an empty declaration
        }
        match attr.parse_args_with(Punctuated::<RawEntry, Token![,]>::parse_terminated) {
            Ok(raw) => entries
                .extend(raw.into_iter().map(|RawEntry { key, value }| Entry { key, targets: targets(value, errors) })),
            Err(error) => errors.push(error),
        }
    }
    entries
}

fn targets(value: Expr, errors: &mut Errors) -> Vec<Target> {
    match value {
        Expr::Array(array) if array.elems.is_empty() => {
            errors.on(array, "an empty list records nothing: name a class, or leave the key out");
            Vec::new()
        }
        Expr::Array(array) => array.elems.into_iter().filter_map(|element| target(element, errors)).collect(),
        value => target(value, errors).into_iter().collect(),
    }
}

fn target(value: Expr, errors: &mut Errors) -> Option<Target> {
    match value {
        Expr::Call(call) if matches!(&*call.func, Expr::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "OutputRecorder")) => {
            recorder(call, errors)
        }
        value => {
            let span = value.span();
            class(value, TARGETS, errors).map(|class| Target::new(class, span))
        }
    }
}

fn class(value: Expr, expected: &str, errors: &mut Errors) -> Option<Class> {
    match value {
        Expr::Path(path) => Some(Class::Path(path)),
        Expr::Group(group) => class(*group.expr, expected, errors),
        Expr::Lit(literal) => match literal.lit {
            Lit::Str(name) => class_name(name, errors),
            other => {
                errors.on(&other, format!("`{}` is no class: expected {expected}", readable(&other)));
                None
            }
        },
        other => {
            errors.on(&other, format!("expected {expected}"));
            None
        }
    }
}

/// A class's name is an identifier: `self_attn.q_proj` is a place, not a class.
fn class_name(name: LitStr, errors: &mut Errors) -> Option<Class> {
    if syn::parse_str::<Ident>(&name.value()).is_ok() {
        return Some(Class::Name(name));
    }
    errors.on(&name, format!("{name:?} is no class name, such as \"MyAttention\"; a place in the model is chosen with `OutputRecorder(Class, layer_name = \"…\")`", name = name.value()));
    None
}

/// `OutputRecorder(Class, index = 1, …)`.
fn recorder(call: ExprCall, errors: &mut Errors) -> Option<Target> {
    let span = call.span();
    let mut arguments = call.args.into_iter();
    let Some(first) = arguments.next().filter(|first| !matches!(first, Expr::Assign(_))) else {
        errors.at(span, "`OutputRecorder` begins with a class: write `OutputRecorder(MyClass, index = 0)`");
        return None;
    };
    let mut target =
        class(first, "a module class or the name of one in quotes", errors).map(|class| Target::new(class, span));
    let mut seen: Vec<String> = Vec::new();
    for argument in arguments {
        let Expr::Assign(assign) = argument else {
            errors.on(argument, "expected `name = value`, such as `index = 1`");
            continue;
        };
        let name = assign.left.to_token_stream().to_string();
        if !ARGUMENTS.contains(&name.as_str()) {
            errors.on(&assign.left, format!("unknown argument `{name}`: {}", did_you_mean(&name, &ARGUMENTS)));
            continue;
        }
        if seen.contains(&name) {
            errors.on(&assign.left, format!("`{name}` is set twice: remove this one"));
            continue;
        }
        // the other arguments are checked also where the class is wrong
        let mut unused = None;
        set(
            target.as_mut().unwrap_or_else(|| unused.insert(Target::new(Class::Path(syn::parse_quote!(Self)), span))),
            &name,
            *assign.right,
            errors,
        );
        seen.push(name);
    }
    target.take()
}

fn set(target: &mut Target, name: &str, value: Expr, errors: &mut Errors) {
    let value = ungrouped(value);
    match name {
        "index" => target.index = integer(&value, errors),
        "layer_name" => {
            target.layer_name = text(value, "layer_name", "the segments of a path, such as \"crossattention\"", errors)
        }
        "capture_initial_hidden_state" => target.initial = boolean(&value, errors),
        _ => target.num_hidden_layers_key = text(value, name, "a field of the config, such as \"num_layers\"", errors),
    }
}

/// Without the groups in which `macro_rules!` hands values on.
fn ungrouped(value: Expr) -> Expr {
    match value {
        Expr::Group(group) => ungrouped(*group.expr),
        Expr::Unary(unary) => Expr::Unary(syn::ExprUnary { expr: Box::new(ungrouped(*unary.expr)), ..unary }),
        value => value,
    }
}

fn integer(value: &Expr, errors: &mut Errors) -> Option<(isize, proc_macro2::Span)> {
    let (negative, literal) = match value {
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => (true, &*unary.expr),
        value => (false, value),
    };
    if let Expr::Lit(literal) = literal
        && let Lit::Int(integer) = &literal.lit
        && let Ok(index) = integer.base10_parse::<isize>()
    {
        return Some((if negative { -index } else { index }, value.span()));
    }
    errors.on(value, "`index` is a whole number, negative to count from the end: write `index = 1`");
    None
}

fn boolean(value: &Expr, errors: &mut Errors) -> Option<LitBool> {
    match value {
        Expr::Lit(literal) if let Lit::Bool(on) = &literal.lit => Some(on.clone()),
        value => {
            errors.on(value, "`capture_initial_hidden_state` is `true` or `false`");
            None
        }
    }
}

fn text(value: Expr, name: &str, what: &str, errors: &mut Errors) -> Option<LitStr> {
    match &value {
        Expr::Lit(literal) if let Lit::Str(text) = &literal.lit => {
            if text.value().chars().all(|char| char == '.') {
                errors.on(text, format!("an empty `{name}` says nothing: leave it out, or write {what}"));
                return None;
            }
            Some(text.clone())
        }
        value => {
            errors.on(value, format!("`{name}` is text in quotes: {what}"));
            None
        }
    }
}
