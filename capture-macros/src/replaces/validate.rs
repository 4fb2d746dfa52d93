//! The rules of `#[replaces]`. Whether the functions are those of the class is for the compiler to say.

use crate::shared::{Errors, last_ident, refuse_qualifiers};
use syn::{ImplItem, ImplItemFn, ItemImpl, ReceiverKind};

const RUN_TIME: &str = "a slot decides at run time what it calls";

/// What is there of a replacement, whether or not it is right.
pub(super) struct Found<'a> {
    pub(super) new: Option<&'a ImplItemFn>,
    pub(super) forward: Option<&'a ImplItemFn>,
}

pub(super) fn check<'a>(item: &'a ItemImpl, errors: &mut Errors) -> Found<'a> {
    if let Some((path, _)) = &item.trait_ {
        errors.on(path, "`#[replaces(…)]` belongs on the struct's own `impl` block, not on that of a trait");
        return Found { new: None, forward: None };
    }
    if last_ident(&item.self_ty).is_none() {
        errors.on(&item.self_ty, "a replacement is a struct: write `impl MyModule`");
    }
    let mut find = |name: &str, hint: &str| {
        let found = functions(item).find(|function| function.sig.ident == name);
        match found {
            None => errors
                .on(&item.self_ty, format!("a replacement needs `{hint}` in this `impl` block, as the class has it")),
            Some(function) => refuse_qualifiers(&function.sig, &format!("`{name}` of a replacement"), RUN_TIME, errors),
        }
        found
    };
    let new = find("new", "fn new(…, init: &Init) -> Self");
    let forward = find("forward", "fn forward(&self, …) -> …");
    if let Some(receiver) = new.and_then(|new| new.sig.receiver()) {
        errors.on(receiver, "`new` of a replacement makes the module, so it takes no `self`");
    }
    if let Some(forward) = forward {
        match forward.sig.receiver() {
            None => errors.at(
                forward.sig.paren_token.span.join(),
                "`forward` of a replacement is called on the module: add `&self`",
            ),
            Some(receiver) if !matches!(receiver.kind, ReceiverKind::Reference(_, _, None)) => errors.on(
                receiver,
                "`forward` of a replacement takes `&self`: the module is shared between calls and threads",
            ),
            Some(_) => {}
        }
    }
    Found { new, forward }
}

fn functions(item: &ItemImpl) -> impl Iterator<Item = &ImplItemFn> {
    item.items.iter().filter_map(|item| match item {
        ImplItem::Fn(function) => Some(function),
        _ => None,
    })
}
