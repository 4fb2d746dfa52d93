//! What the macros expand to, and what they report, without a compiler.

mod reports;
mod snapshots;

use crate::shared::Failure;
use proc_macro2::TokenStream;
use quote::quote;

type Entry = fn(TokenStream, TokenStream, &TokenStream) -> Result<TokenStream, Failure>;

fn core() -> TokenStream {
    quote!(::patching_core)
}

/// The expansion as it would be formatted, in the place that an item of this kind has.
fn expanded(tokens: TokenStream, in_impl: bool) -> String {
    let tokens = if in_impl { quote!(impl Model { #tokens }) } else { tokens };
    let file: syn::File = syn::parse2(tokens).expect("the expansion is items");
    prettyplease::unparse(&file)
}

fn method(entry: Entry, args: TokenStream, item: TokenStream) -> String {
    expanded(entry(args, item, &core()).expect("a valid item"), true)
}

/// The messages, in order.
fn messages(result: Result<TokenStream, Failure>) -> Vec<String> {
    let tokens = result.expect_err("a mistake").beside(TokenStream::new());
    let mut literals = Vec::new();
    collect(tokens, &mut literals);
    literals
}

/// The texts of all `compile_error!`s.
fn collect(tokens: TokenStream, into: &mut Vec<String>) {
    let mut after = false;
    for token in tokens {
        match token {
            proc_macro2::TokenTree::Ident(ident) => after = ident == "compile_error",
            proc_macro2::TokenTree::Group(group) if after => {
                let text: syn::LitStr = syn::parse2(group.stream()).expect("a text");
                into.push(text.value());
                after = false;
            }
            proc_macro2::TokenTree::Group(group) => collect(group.stream(), into),
            _ => {}
        }
    }
}
