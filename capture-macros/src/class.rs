//! `#[module_class]` and `#[replaces]`.
use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, FnArg, GenericParam, ImplItem, ImplItemFn, ItemImpl, Pat, Path, ReceiverKind, Result, ReturnType,
    Token, Type, parse_quote, parse2,
};

/// `new` or `forward` of a class, taken apart.
struct Function {
    ident: Ident,
    vis: syn::Visibility,
    docs: Vec<Attribute>,
    lifetimes: TokenStream,
    names: Vec<Ident>,
    types: Vec<TokenStream>,
    output: TokenStream,
    output_span: proc_macro2::Span,
}

/// `Self` means something else inside the interface trait.
fn without_self(tokens: TokenStream, class: &TokenStream) -> TokenStream {
    tokens
        .into_iter()
        .flat_map(|t| match t {
            TokenTree::Ident(i) if i == "Self" => class.clone().into_iter().collect::<Vec<_>>(),
            TokenTree::Group(g) => {
                let mut n = Group::new(g.delimiter(), without_self(g.stream(), class));
                n.set_span(g.span());
                vec![n.into()]
            }
            t => vec![t],
        })
        .collect()
}
fn function(f: &ImplItemFn, class: &TokenStream) -> Result<Function> {
    let sig = &f.sig;
    if let Some(t) = &sig.asyncness {
        return Err(Error::new(t.span(), "a module class is not async"));
    }
    let mut lifetimes = Vec::new();
    for p in &sig.generics.params {
        match p {
            GenericParam::Lifetime(l) if l.bounds.is_empty() => lifetimes.push(&l.lifetime),
            p => {
                return Err(Error::new(
                    p.span(),
                    format!(
                        "`{}` of a module class cannot be generic: a slot decides at run time what it calls",
                        sig.ident
                    ),
                ));
            }
        }
    }
    let (mut names, mut types) = (Vec::new(), Vec::new());
    for arg in &sig.inputs {
        let FnArg::Typed(arg) = arg else { continue };
        if let Some(cfg) = arg.attrs.iter().find(|a| a.path().is_ident("cfg") || a.path().is_ident("cfg_attr")) {
            return Err(Error::new(cfg.span(), "an argument of a module class cannot be conditional"));
        }
        if let Type::ImplTrait(t) = &*arg.ty {
            return Err(Error::new(t.span(), "a module class cannot take `impl Trait`: name the type"));
        }
        names.push(match &*arg.pat {
            Pat::Ident(p) => p.ident.clone(),
            p => format_ident!("arg{}", names.len(), span = p.span()),
        });
        types.push(without_self(arg.ty.to_token_stream(), class));
    }
    let (output, output_span) = match &sig.output {
        ReturnType::Default => (quote!(()), sig.ident.span()),
        ReturnType::Type(_, t) => {
            if matches!(**t, Type::Reference(_) | Type::ImplTrait(_)) {
                return Err(Error::new(t.span(), "a module class returns owned values of a named type"));
            }
            (t.to_token_stream(), t.span())
        }
    };
    Ok(Function {
        ident: sig.ident.clone(),
        vis: f.vis.clone(),
        docs: f
            .attrs
            .iter()
            .filter(|a| a.path().is_ident("doc") || a.path().is_ident("deprecated") || a.path().is_ident("must_use"))
            .cloned()
            .collect(),
        lifetimes: if lifetimes.is_empty() { quote!() } else { quote!(for<#(#lifetimes),*>) },
        names,
        types,
        output: without_self(output, class),
        output_span,
    })
}
fn find<'a>(item: &'a ItemImpl, name: &str, hint: &str) -> Result<&'a ImplItemFn> {
    item.items
        .iter()
        .find_map(|i| match i {
            ImplItem::Fn(f) if f.sig.ident == name => Some(f),
            _ => None,
        })
        .ok_or_else(|| Error::new(item.self_ty.span(), format!("a module class needs `{hint}` in this `impl`")))
}
fn parse(item: TokenStream) -> Result<(ItemImpl, TokenStream, Ident)> {
    let item: ItemImpl = parse2(item)?;
    if let Some((path, _)) = &item.trait_ {
        return Err(Error::new(path.span(), "write this on the inherent `impl`, not on that of a trait"));
    }
    if let Some(p) = item.generics.params.first() {
        return Err(Error::new(p.span(), "a module class cannot be generic: name one concrete type"));
    }
    let Type::Path(p) = &*item.self_ty else {
        return Err(Error::new(item.self_ty.span(), "a module class is a struct of this crate"));
    };
    let ident = p.path.segments.last().map(|s| s.ident.clone()).ok_or_else(|| Error::new(p.span(), "no name"))?;
    let class = item.self_ty.to_token_stream();
    Ok((item, class, ident))
}
fn check_receivers(new: &ImplItemFn, forward: &ImplItemFn) -> Result<()> {
    if let Some(r) = new.sig.receiver() {
        return Err(Error::new(r.span(), "`new` of a module class takes no `self`"));
    }
    match forward.sig.receiver().map(|r| &r.kind) {
        Some(ReceiverKind::Reference(_, _, None)) => Ok(()),
        _ => Err(Error::new(forward.sig.paren_token.span.join(), "`forward` of a module class takes `&self`")),
    }
}

pub fn module_class(_args: TokenStream, tokens: TokenStream) -> Result<TokenStream> {
    let (item, class, ident) = parse(tokens)?;
    let (new, forward) =
        (find(&item, "new", "fn new(…) -> Self")?, find(&item, "forward", "fn forward(&self, …) -> …")?);
    check_receivers(new, forward)?;
    let (n, f) = (function(new, &class)?, function(forward, &class)?);
    let interface = format_ident!("{ident}Interface", span = ident.span());
    let name = ident.to_string();
    let init = n
        .types
        .iter()
        .zip(&n.names)
        .find(|(t, _)| t.to_string().replace(" ", "").ends_with("Init"))
        .map(|(_, n)| n.clone())
        .ok_or_else(|| Error::new(new.sig.ident.span(), "`new` of a module class takes `init: &Init`"))?;
    let core = crate::root();
    let (new_names, new_types, new_lt, slot_vis) = (&n.names, &n.types, &n.lifetimes, &n.vis);
    let (names, types, lt, out, vis, docs) = (&f.names, &f.types, &f.lifetimes, &f.output, &f.vis, &f.docs);
    let (g_new, g_fwd) = (&new.sig.generics, &forward.sig.generics);
    let slot_doc = format!("A slot with a [`{name}`], or with what the patches in effect put in its place.");
    let forward_doc = format!("[`{name}::forward`] of whatever this slot holds.");
    let doc = format!("Calls of a [`{name}`] slot.");
    let first = names.first();
    let input = match first {
        Some(a) => {
            quote!(__call.input(|__keep| { #[allow(unused_imports)] use #core::__private::NoTensor as _; #core::__private::Argument(&#a).value(__keep) });)
        }
        None => quote!(__call.input(|_| ::core::option::Option::None);),
    };
    // the output's bound is reported at the user's return type
    let out_check = quote_spanned!(f.output_span=> const _: () = { fn __output<T: #core::capture::ModuleOutput>() {} let _ = __output::<#out>; };);
    let forward_ident = &f.ident;
    Ok(quote! {
        #item
        #[automatically_derived]
        impl #class {
            #[doc = #slot_doc]
            #[allow(clippy::too_many_arguments)]
            #slot_vis fn slot #g_new(#(#new_names: #new_types),*) -> #core::class::Slot<#class> {
                let __capture_construct = #core::class::Init::__construct::<#class>(#init);
                let #init = __capture_construct.init(#init);
                (__capture_construct.new)(#(#new_names),*)
            }
        }
        #[doc = #doc]
        #[allow(private_interfaces, private_bounds)]
        pub trait #interface: #core::class::Erased<#class> {
            #[doc(hidden)]
            #[allow(clippy::too_many_arguments)]
            fn __capture_forward #g_fwd(&self, #(#names: #types),*) -> #out;
        }
        #[allow(private_interfaces)]
        impl dyn #interface {
            #[doc = #forward_doc]
            #[doc = ""]
            #(#docs)*
            #[inline]
            #[allow(clippy::too_many_arguments)]
            #vis fn #forward_ident #g_fwd(&self, #(#names: #types),*) -> #out {
                match #core::__private::enter::<Self, #out>(self) {
                    ::core::option::Option::None => self.__capture_forward(#(#names),*),
                    ::core::option::Option::Some(__call) => {
                        #input
                        let __output = self.__capture_forward(#(#names),*);
                        __call.output(&__output);
                        __output
                    }
                }
            }
        }
        impl<__M: #core::class::Implements<#class>> #interface for #core::class::Hooked<__M> {
            #[inline]
            fn __capture_forward #g_fwd(&self, #(#names: #types),*) -> #out {
                (<__M as #core::class::Implements<#class>>::FORWARD)(self.__module(), #(#names),*)
            }
        }
        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        impl #core::class::ModuleClass for #class {
            const NAME: &'static str = #name;
            type Interface = dyn #interface;
            type New<__M: 'static> = #new_lt fn(#(#new_types),*) -> __M;
            type Forward<__M: 'static> = #lt fn(&__M, #(#types),*) -> #out;
            type Output = #out;
            #[inline]
            fn __boxed<__M: #core::class::Implements<Self>>(hooked: #core::class::Hooked<__M>) -> ::std::boxed::Box<Self::Interface> { ::std::boxed::Box::new(hooked) }
            fn __factory<__M: #core::class::Implements<Self>>() -> Self::New<#core::class::Slot<Self>> {
                |#(#new_names),*| #core::class::Slot::of((<__M as #core::class::Implements<Self>>::NEW)(#(#new_names),*))
            }
        }
        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        impl #core::class::Implements<#class> for #class {
            const NEW: <#class as #core::class::ModuleClass>::New<Self> = Self::new;
            const FORWARD: <#class as #core::class::ModuleClass>::Forward<Self> = Self::forward;
        }
        #out_check
    })
}
