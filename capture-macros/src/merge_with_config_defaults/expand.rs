//! What `#[merge_with_config_defaults]` puts at the head of a method.

use super::model::{Merge, Rule};
use crate::shared::Request;
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{FnArg, ImplItemFn, Pat, Token, parse_quote};

pub(super) fn expand(mut function: ImplItemFn, merge: &Merge, core: &TokenStream) -> TokenStream {
    let this = &merge.this;
    let config = match &merge.config {
        Some(config) => config.to_token_stream(),
        None => quote_spanned!(this.span()=> #this.config),
    };
    let device = quote!(|| {
        #[allow(unused_imports)]
        use #core::__private::DeviceByWalk as _;
        #core::__private::DeviceOf(#this).get()
    });
    let mut head = Vec::new();
    for merged in &merge.arguments {
        let (name, mutability) = (&merged.name, take_mutability(&mut function, &merged.name));
        let default = quote_spanned!(name.span()=> ::core::clone::Clone::clone(&#config.#name));
        let value = match merged.rule {
            Rule::Plain => quote!(#core::__private::merged(#name, #default)),
            Rule::UseCache => quote!(#core::__private::merged_use_cache(#name, #default, #device)),
            Rule::SelectStrategy => quote!(#core::__private::merged_select_strategy(#name, #default)?),
        };
        head.push(parse_quote!(let #mutability #name = #value;));
    }
    if let Some(Request { name, is_reference }) = &merge.request {
        let mutability = take_mutability(&mut function, name);
        if *is_reference {
            head.push(parse_quote!(let __capture_kwargs = #core::__private::merged_kwargs(#name, &#config, #device);));
            head.push(parse_quote!(let #mutability #name = &*__capture_kwargs;));
        } else {
            head.push(parse_quote!(let #mutability #name = #core::__private::merged_kwargs(&#name, &#config, #device).into_owned();));
        }
        // the body may have no use for what is not recorded
        head.push(parse_quote!(let _ = &#name;));
    }
    function.block.stmts.splice(0..0, head);
    function.into_token_stream()
}

/// An argument that is shadowed is not mutable itself.
fn take_mutability(function: &mut ImplItemFn, name: &Ident) -> Option<Token![mut]> {
    function.sig.inputs.iter_mut().find_map(|input| match input {
        FnArg::Typed(typed) => match &mut *typed.pat {
            Pat::Ident(pat) if pat.ident == *name => Some(pat.mutability.take()),
            _ => None,
        },
        FnArg::Receiver(_) => None,
    })?
}
