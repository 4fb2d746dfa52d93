//! The classes that are replaced.

use crate::shared::{Errors, readable};
use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Path, Token};

pub(super) fn parse(args: TokenStream, errors: &mut Errors) -> Vec<Path> {
    let classes = match Punctuated::<Path, Token![,]>::parse_terminated.parse2(args.clone()) {
        Ok(classes) => classes,
        Err(_) => {
            errors
                .on(args, "`#[replaces(…)]` takes the module classes to stand in for: write `#[replaces(SomeClass)]`");
            return Vec::new();
        }
    };
    if classes.is_empty() {
        errors.at(Span::call_site(), "which module class does it replace? write `#[replaces(SomeClass)]`");
    }
    let mut seen = Vec::<String>::new();
    for class in &classes {
        let name = class.to_token_stream().to_string();
        if seen.contains(&name) {
            errors.on(class, format!("`{}` is named twice: remove this one", readable(class)));
        }
        seen.push(name);
    }
    classes.into_iter().collect()
}
