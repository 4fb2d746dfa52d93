//! The rules of `#[module_class]`.

use super::model::{Found, class_path, inits};
use crate::shared::{Errors, arguments, last_segment, readable, refuse_qualifiers};
use syn::visit::{self, Visit};
use syn::{
    Attribute, GenericParam, ImplItem, ImplItemFn, ItemImpl, Lifetime, ReceiverKind, ReturnType, Type, TypeImplTrait,
    TypeReference,
};

const RUN_TIME: &str = "a slot decides at run time what it calls";

/// Checks everything; what is found of the two functions is of use also where something is wrong.
pub(super) fn check<'a>(item: &'a ItemImpl, errors: &mut Errors) -> Found<'a> {
    if let Some((path, _)) = &item.trait_ {
        errors.on(path, "`#[module_class]` belongs on the struct's own `impl` block, not on that of a trait");
        return Found { new: None, forward: None };
    }
    if class_path(item).is_none() {
        errors.on(&item.self_ty, "a module class is a struct: write `impl MyModule`");
    }
    for param in &item.generics.params {
        errors.on(param, format!("a module class cannot be generic: {RUN_TIME}, and its name stands for one type; write `impl` for one concrete type"));
    }
    let mut find = |name: &str, hint: &str| {
        let found = functions(item).find(|function| function.sig.ident == name);
        if found.is_none() {
            errors.on(&item.self_ty, format!("a module class needs `{hint}` in this `impl` block"));
        }
        found
    };
    let new = find("new", "fn new(…, init: &Init) -> Self");
    let forward = find("forward", "fn forward(&self, …) -> …");
    if let Some(new) = new {
        check_function(new, "`new` of a module class", errors);
        check_new(new, item, errors);
    }
    if let Some(forward) = forward {
        check_function(forward, "`forward` of a module class", errors);
        check_forward(forward, errors);
    }
    Found { new, forward }
}

fn functions(item: &ItemImpl) -> impl Iterator<Item = &ImplItemFn> {
    item.items.iter().filter_map(|item| match item {
        ImplItem::Fn(function) => Some(function),
        _ => None,
    })
}

/// What holds for both functions.
fn check_function(function: &ImplItemFn, what: &str, errors: &mut Errors) {
    let sig = &function.sig;
    refuse_qualifiers(sig, what, RUN_TIME, errors);
    if let Some(condition) = condition(&function.attrs) {
        errors.on(condition, format!("{what} cannot be conditional: write the condition on the `impl` block"));
    }
    for param in &sig.generics.params {
        match param {
            GenericParam::Lifetime(lifetime) if lifetime.bounds.is_empty() => {}
            GenericParam::Lifetime(lifetime) => errors.on(
                &lifetime.bounds,
                format!("lifetimes of {what} have no bounds: function pointers cannot express them"),
            ),
            param => errors.on(param, format!("{what} cannot be generic: {RUN_TIME}; name the type")),
        }
    }
    // without generics there is nothing that a bound could be about but lifetimes
    if let Some(clause) = sig.generics.where_clause.as_ref().filter(|_| {
        !sig.generics.params.iter().any(|param| matches!(param, GenericParam::Type(_) | GenericParam::Const(_)))
    }) {
        errors.on(clause, format!("{what} has no `where` clause: function pointers cannot express it"));
    }
    if let Some(variadic) = &sig.variadic {
        errors.on(variadic, format!("{what} has a fixed number of arguments"));
    }
    for argument in arguments(sig) {
        if let Some(condition) = condition(&argument.typed.attrs) {
            errors.on(condition, format!("an argument of {what} cannot be conditional: replacements take the same arguments; make it an `Option`"));
        }
        ImplTraits { what, errors }.visit_type(argument.ty());
    }
}

fn condition(attrs: &[Attribute]) -> Option<&Attribute> {
    attrs.iter().find(|attr| attr.path().is_ident("cfg") || attr.path().is_ident("cfg_attr"))
}

struct ImplTraits<'a> {
    what: &'a str,
    errors: &'a mut Errors,
}

impl<'ast> Visit<'ast> for ImplTraits<'_> {
    fn visit_type_impl_trait(&mut self, ty: &'ast TypeImplTrait) {
        self.errors
            .on(ty, format!("{} cannot take `impl Trait`: {RUN_TIME}; name the type, or take `&dyn Trait`", self.what));
    }
}

fn check_new(new: &ImplItemFn, item: &ItemImpl, errors: &mut Errors) {
    let sig = &new.sig;
    if let Some(receiver) = sig.receiver() {
        errors.on(receiver, "`new` of a module class makes the module, so it takes no `self`");
    }
    let arguments = arguments(sig);
    match inits(&arguments).as_slice() {
        [] => errors.at(
            sig.paren_token.span.join(),
            "`new` of a module class is told the device and the patches: add an argument `init: &Init`",
        ),
        [init] => {
            if !matches!(init.ty(), Type::Reference(reference) if reference.mutability.is_none()) {
                errors.on(init.ty(), "`new` of a module class only reads the `Init`: write `&Init`");
            }
        }
        [_, more @ ..] => more
            .iter()
            .for_each(|init| errors.on(init.typed, "`new` of a module class takes one `&Init`: remove this one")),
    }
    let is_self = |ty: &Type| match (last_segment(ty), class_path(item)) {
        (Some(segment), _) if segment.ident == "Self" => true,
        (Some(segment), Some(class)) => class.segments.last().is_some_and(|last| last.ident == segment.ident),
        _ => false,
    };
    match &sig.output {
        ReturnType::Type(_, ty) if !matches!(**ty, Type::Reference(_)) && is_self(ty) => {}
        ReturnType::Type(_, ty) => errors.on(
            ty,
            "`new` of a module class returns `Self`: what it makes goes into a slot as it is; check a config before",
        ),
        ReturnType::Default => errors.on(&sig.ident, "`new` of a module class returns `Self`: write `-> Self`"),
    }
}

fn check_forward(forward: &ImplItemFn, errors: &mut Errors) {
    let sig = &forward.sig;
    match sig.receiver() {
        None => {
            errors.at(sig.paren_token.span.join(), "`forward` of a module class is called on the module: add `&self`")
        }
        Some(receiver) if !matches!(receiver.kind, ReceiverKind::Reference(_, _, None)) => {
            errors.on(
                receiver,
                "`forward` of a module class takes `&self`: the module is shared between calls and threads",
            );
        }
        Some(_) => {}
    }
    match &sig.output {
        ReturnType::Default => errors.on(
            &sig.ident,
            "`forward` of a module class returns what can be recorded: a tensor, an option of one, or a tuple of those",
        ),
        ReturnType::Type(_, ty) => Owned { errors }.visit_type(ty),
    }
}

/// Reports what an output borrows or leaves unnamed.
struct Owned<'a> {
    errors: &'a mut Errors,
}

impl<'ast> Visit<'ast> for Owned<'_> {
    fn visit_type_reference(&mut self, ty: &'ast TypeReference) {
        let owned = readable(&ty.elem);
        self.errors.on(ty, format!("`forward` of a module class returns owned values, which can be kept: write `{owned}`; a clone of a tensor shares its storage"));
    }
    fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
        if lifetime.ident != "static" {
            self.errors.on(
                lifetime,
                "`forward` of a module class returns owned values, which can be kept: name a type without a lifetime",
            );
        }
    }
    fn visit_type_impl_trait(&mut self, ty: &'ast TypeImplTrait) {
        self.errors.on(
            ty,
            "`forward` of a module class cannot return `impl Trait`: replacements return the same type; name it",
        );
    }
}

/// What `forward` returns, if that can stand in a place of its own; a reference's target where it borrows.
pub(super) fn nameable_output(forward: &ImplItemFn) -> Option<&Type> {
    struct Unnameable(bool);
    impl<'ast> Visit<'ast> for Unnameable {
        fn visit_type_impl_trait(&mut self, _: &'ast TypeImplTrait) {
            self.0 = true;
        }
        fn visit_lifetime(&mut self, _: &'ast Lifetime) {
            self.0 = true;
        }
        fn visit_type_reference(&mut self, ty: &'ast TypeReference) {
            self.0 = true;
            visit::visit_type_reference(self, ty);
        }
    }
    let ReturnType::Type(_, ty) = &forward.sig.output else { return None };
    let ty = match &**ty {
        Type::Reference(reference) => &*reference.elem,
        ty => ty,
    };
    let mut unnameable =
        Unnameable(forward.sig.generics.params.iter().any(|param| !matches!(param, GenericParam::Lifetime(_))));
    unnameable.visit_type(ty);
    (!unnameable.0).then_some(ty)
}
