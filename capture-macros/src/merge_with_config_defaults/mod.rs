//! `#[merge_with_config_defaults]`.

mod args;
mod expand;
mod model;
mod validate;

use crate::shared::{Errors, Failure};
use args::Args;
use proc_macro2::TokenStream;
use syn::{Error, ImplItemFn};

pub(crate) fn entry(args: TokenStream, item: TokenStream, core: &TokenStream) -> Result<TokenStream, Failure> {
    let belongs = "`#[merge_with_config_defaults]` belongs on a method of a model, inside its `impl` block";
    let function: ImplItemFn = syn::parse2(item.clone()).map_err(|_| Error::new_spanned(item, belongs))?;
    let mut errors = Errors::default();
    let args = Args::parse(args, &mut errors);
    let merge = validate::check(&function, args, &mut errors);
    errors.check(TokenStream::new)?;
    Ok(expand::expand(function, &merge, core))
}
