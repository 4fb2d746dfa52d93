//! What `#[replaces]` generates.

use super::model::Replacement;
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ItemImpl;

pub(super) fn expand(item: &ItemImpl, replacement: &Replacement<'_>, core: &TokenStream) -> TokenStream {
    let Replacement { ty, generics, new, forward, classes } = replacement;
    let conditions: Vec<_> = item.attrs.iter().filter(|attr| attr.path().is_ident("cfg")).collect();
    let (generics, _, where_clause) = generics.split_for_impl();
    // the compiler reports what does not fit at the user's functions
    let (new, forward) = (quote_spanned!(*new=> Self::new), quote_spanned!(*forward=> Self::forward));
    let implements = classes.iter().map(|class| {
        quote! {
            #(#conditions)*
            #[automatically_derived]
            #[diagnostic::do_not_recommend]
            #[allow(clippy::all, clippy::pedantic, deprecated)]
            impl #generics #core::class::Implements<#class> for #ty #where_clause {
                const NEW: <#class as #core::class::ModuleClass>::New<Self> = #new;
                const FORWARD: <#class as #core::class::ModuleClass>::Forward<Self> = #forward;
            }
        }
    });
    quote! {
        #item
        #(#implements)*
        #(#conditions)*
        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        #[allow(clippy::all, clippy::pedantic, deprecated)]
        impl #generics #core::__private::Replacement for #ty #where_clause {
            fn replacement_class() -> #core::__private::ReplacementClass {
                #core::__private::ReplacementClass::of::<Self>()
                    #(.standing_in_for::<#classes>())*
                    .build()
            }
        }
    }
}
