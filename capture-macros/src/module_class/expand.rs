//! What `#[module_class]` generates.

use super::model::{Class, Found, Function, class_path};
use super::validate::nameable_output;
use crate::shared::without_self;
use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::{FnArg, Generics, ItemImpl};

pub(super) fn expand(item: &ItemImpl, class: &Class, core: &TokenStream) -> TokenStream {
    let [interface, inherent, hooked] = interface(class, core);
    let parts = [
        slot(class, core),
        interface,
        inherent,
        hooked,
        module_class(class, core),
        implements(class, core),
        registration(class, core),
    ];
    let conditions = &class.conditions;
    let conditions = quote!(#(#conditions)*);
    quote!(#item #( #conditions #parts )*)
}

/// `MyAttention::slot`.
fn slot(class: &Class, core: &TokenStream) -> TokenStream {
    let Class { path, ident, init, new, .. } = class;
    let Function { vis, generics, names, types, .. } = new;
    let doc = format!("A slot with a [`{ident}`], or with what the patches of `{init}` put in its place.");
    quote! {
        #[allow(clippy::all, clippy::pedantic, deprecated, private_interfaces)]
        impl #path {
            #[doc = #doc]
            #[allow(dead_code)]
            #vis fn slot #generics(#(#names: #types),*) -> #core::class::Slot<#path> {
                let __capture_construct = #core::class::Init::__construct::<#path>(#init);
                let #init = __capture_construct.init(#init);
                (__capture_construct.new)(#(#names),*)
            }
        }
    }
}

/// The trait behind a slot's pointer, and the only way to call it, which passes the hook.
fn interface(class: &Class, core: &TokenStream) -> [TokenStream; 3] {
    let Class { path, ident, forward, .. } = class;
    let Function { ident: forward_ident, vis, docs, generics, receiver, names, types, output, .. } = forward;
    let interface = interface_name(class);
    let doc = format!("What a [`{ident}`] slot offers: the `forward` of whatever it holds.");
    let forward_doc = format!("[`{ident}::forward`] of whatever this slot holds.");
    let input = match names.first() {
        Some(first) => quote!(__capture_call.input(|__capture_keep| {
            #[allow(unused_imports)]
            use #core::__private::NoTensor as _;
            #core::__private::Argument(&#first).value(__capture_keep)
        })),
        None => quote!(__capture_call.input(|_| ::core::option::Option::None)),
    };
    let this = quote!(& #receiver self);
    let trait_ = quote! {
        #[doc = #doc]
        #[allow(clippy::all, clippy::pedantic, deprecated, private_interfaces, private_bounds)]
        pub trait #interface: #core::class::Erased<#path> {
            #[doc(hidden)]
            fn __capture_forward #generics(#this, #(#names: #types),*) -> #output;
        }
    };
    let inherent = quote! {
        #[allow(clippy::all, clippy::pedantic, deprecated, private_interfaces)]
        impl dyn #interface {
            #[doc = #forward_doc]
            #[doc = ""]
            #(#docs)*
            #[allow(dead_code)]
            #[inline]
            #vis fn #forward_ident #generics(#this, #(#names: #types),*) -> #output {
                match #core::__private::enter::<#path>(self) {
                    ::core::option::Option::None => self.__capture_forward(#(#names),*),
                    ::core::option::Option::Some(__capture_call) => {
                        #input;
                        let __capture_output = self.__capture_forward(#(#names),*);
                        __capture_call.output::<#path>(&__capture_output);
                        __capture_output
                    }
                }
            }
        }
    };
    let hooked = quote! {
        #[automatically_derived]
        #[allow(clippy::all, clippy::pedantic, deprecated)]
        impl<__M: #core::class::Implements<#path>> #interface for #core::class::Hooked<__M> {
            #[inline]
            fn __capture_forward #generics(#this, #(#names: #types),*) -> #output {
                (<__M as #core::class::Implements<#path>>::FORWARD)(self.__module(), #(#names),*)
            }
        }
    };
    [trait_, inherent, hooked]
}

fn interface_name(class: &Class) -> proc_macro2::Ident {
    format_ident!("{}Interface", class.ident, span = class.ident.span())
}

fn module_class(class: &Class, core: &TokenStream) -> TokenStream {
    let Class { path, ident, new, forward, .. } = class;
    let (new_binder, new_names, new_types) = (&new.binder, &new.names, &new.types);
    let Function { binder, receiver, types, output, .. } = forward;
    let (name, interface) = (class_name(ident), interface_name(class));
    quote! {
        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        #[allow(clippy::all, clippy::pedantic, deprecated)]
        impl #core::class::ModuleClass for #path {
            const NAME: &'static str = #name;
            type Output = #output;
            type Interface = dyn #interface;
            type New<__M: 'static> = #new_binder fn(#(#new_types),*) -> __M;
            type Forward<__M: 'static> = #binder fn(& #receiver __M, #(#types),*) -> #output;
            #[inline]
            fn __boxed<__M: #core::class::Implements<Self>>(__capture_hooked: #core::class::Hooked<__M>) -> ::std::boxed::Box<Self::Interface> {
                ::std::boxed::Box::new(__capture_hooked)
            }
            fn __factory<__M: #core::class::Implements<Self>>() -> Self::New<#core::class::Slot<Self>> {
                |#(#new_names),*| #core::class::Slot::of((<__M as #core::class::Implements<Self>>::NEW)(#(#new_names),*))
            }
        }
    }
}

fn implements(class: &Class, core: &TokenStream) -> TokenStream {
    let path = &class.path;
    quote! {
        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        #[allow(deprecated)]
        impl #core::class::Implements<#path> for #path {
            const NEW: <#path as #core::class::ModuleClass>::New<Self> = Self::new;
            const FORWARD: <#path as #core::class::ModuleClass>::Forward<Self> = Self::forward;
        }
    }
}

/// The program can list its classes.
fn registration(class: &Class, core: &TokenStream) -> TokenStream {
    let name = class_name(&class.ident);
    quote! {
        #core::__private::inventory::submit! {
            #core::__private::ClassName { name: #name, module: ::core::module_path!() }
        }
    }
}

fn class_name(ident: &proc_macro2::Ident) -> String {
    syn::ext::IdentExt::unraw(ident).to_string()
}

/// What a class that has mistakes is to the rest of the program: slots of it can be named, made and called.
pub(super) fn instead(item: &ItemImpl, found: &Found<'_>, core: &TokenStream) -> TokenStream {
    if !item.generics.params.is_empty() {
        return TokenStream::new();
    }
    let Some((path, ident)) = class_path(item).and_then(|path| Some((path, &path.segments.last()?.ident))) else {
        return TokenStream::new();
    };
    let slot = found.new.map(|new| {
        let class = path.to_token_stream();
        let Generics { params, where_clause, .. } = &new.sig.generics;
        let inputs = new.sig.inputs.iter().filter(|input| matches!(input, FnArg::Typed(_)));
        let vis = &new.vis;
        quote! {
            #[allow(unused, clippy::all, clippy::pedantic)]
            impl #class {
                #vis fn slot<#params>(#(#inputs),*) -> #core::class::Slot<#class> #where_clause { ::core::unreachable!() }
            }
        }
    });
    let Some(output) = found.forward.and_then(nameable_output) else { return TokenStream::new() };
    let (output, name) = (without_self(output.to_token_stream(), &path.to_token_stream()), class_name(ident));
    let conditions: Vec<_> = item.attrs.iter().filter(|attr| attr.path().is_ident("cfg")).collect();
    let impls = quote! {
        impl #core::class::ModuleClass for #path {
            const NAME: &'static str = #name;
            type Output = #output;
            type Interface = #core::__private::Failed<Self>;
            type New<__M: 'static> = ();
            type Forward<__M: 'static> = ();
            fn __boxed<__M: #core::class::Implements<Self>>(_: #core::class::Hooked<__M>) -> ::std::boxed::Box<Self::Interface> { ::core::unreachable!() }
            fn __factory<__M: #core::class::Implements<Self>>() {}
        }
    };
    let implements = quote! {
        impl #core::class::Implements<#path> for #path {
            const NEW: () = ();
            const FORWARD: () = ();
        }
    };
    quote!(#( #conditions )* #slot #( #conditions )* #impls #( #conditions )* #implements)
}
