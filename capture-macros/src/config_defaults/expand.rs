//! What `#[derive(ConfigDefaults)]` generates.

use super::model::Config;
use crate::shared::placed;
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

pub(super) fn expand(config: &Config<'_>, core: &TokenStream) -> TokenStream {
    let Config { ident, generics, flags, settings } = config;
    let (impl_generics, ty, clause) = generics.split_for_impl();
    let (keys, values): (Vec<_>, Vec<_>) = flags
        .iter()
        .map(|(key, field)| {
            let (ident, core) = (field.ident, placed(core, field.ty.span()));
            (
                key,
                quote_spanned!(field.ty.span()=> #core::capture::Flag::from(::core::clone::Clone::clone(&self.#ident))),
            )
        })
        .unzip();
    let output_flag = (!flags.is_empty()).then(|| {
        quote! {
            fn output_flag(&self, __capture_key: &str) -> ::core::option::Option<#core::capture::Flag> {
                match __capture_key {
                    #(#keys => ::core::option::Option::Some(#values),)*
                    _ => ::core::option::Option::None,
                }
            }
        }
    });
    let settings = settings.iter().map(|field| {
        let ident = field.ident;
        let value =
            quote_spanned!(field.ty.span()=> ::core::convert::Into::into(::core::clone::Clone::clone(&self.#ident)));
        quote!(fn #ident(&self) -> ::core::option::Option<bool> { #value })
    });
    quote! {
        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        #[allow(clippy::useless_conversion)]
        impl #impl_generics #core::capture::ConfigDefaults for #ident #ty #clause {
            #output_flag
            #(#settings)*
        }
    }
}
