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
        // the argument's word, then the request's, then the config's
        let request = merge.request.as_ref().map(|request| &request.name);
        let said = match (merged.rule, request) {
            (Rule::UseCache, Some(request)) => quote!(#name.or(#request.get_use_cache())),
            (Rule::IsCausal, Some(request)) => quote!(#name.or(#request.get_is_causal())),
            _ => name.to_token_stream(),
        };
        let value = match merged.rule {
            Rule::Plain | Rule::IsCausal => quote!(#core::__private::merged(#said, #default)),
            Rule::UseCache => quote!(#core::__private::merged_use_cache(#said, #default, #device)),
            Rule::SelectStrategy => quote!(#core::__private::merged_select_strategy(#said, #default)?),
        };
        head.push(parse_quote!(let #mutability #name = #value;));
    }
    if let Some(Request { name, is_reference }) = &merge.request {
        let mutability = take_mutability(&mut function, name);
        let merged = quote!(#core::__private::merged_kwargs(&#name, &#config, #device));
        head.push(parse_quote!(let __capture_kwargs = #merged;));
        let argument = |rule| merge.arguments.iter().find(|merged| merged.rule == rule).map(|merged| &merged.name);
        let (use_cache, is_causal) = (argument(Rule::UseCache), argument(Rule::IsCausal));
        if use_cache.is_some() || is_causal.is_some() {
            let use_cache =
                use_cache.map_or_else(|| quote!(__capture_kwargs.get_use_cache()), ToTokens::to_token_stream);
            let is_causal =
                is_causal.map_or_else(|| quote!(__capture_kwargs.get_is_causal()), ToTokens::to_token_stream);
            let with = quote!(#core::__private::with_arguments(&__capture_kwargs, #use_cache, #is_causal));
            head.push(parse_quote!(let __capture_kwargs = #with;));
        }
        if *is_reference {
            head.push(parse_quote!(let #mutability #name = &*__capture_kwargs;));
        } else {
            head.push(parse_quote!(let #mutability #name = __capture_kwargs.into_owned();));
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
