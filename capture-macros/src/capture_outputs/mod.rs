//! `#[capture_outputs]`.

mod args;
mod expand;
mod leave;
mod model;
mod validate;

use crate::shared::{Errors, Failure};
use args::Args;
use model::Forward;
use proc_macro2::TokenStream;
use syn::{Error, ImplItemFn};

pub(crate) fn entry(args: TokenStream, item: TokenStream, core: &TokenStream) -> Result<TokenStream, Failure> {
    let belongs = "`#[capture_outputs]` belongs on the `forward` of a base model, inside its `impl` block";
    let function: ImplItemFn = syn::parse2(item.clone()).map_err(|_| Error::new_spanned(item, belongs))?;
    let mut errors = Errors::default();
    let args = Args::parse(args, &mut errors);
    let request = validate::check(&function, &args, &mut errors);
    errors.check(|| expand::instead(&function))?;
    // without errors there is a request
    let request = request.ok_or_else(|| Error::new_spanned(&function.sig, belongs))?;
    let forward = Forward::new(function, args, request)?;
    Ok(expand::expand(&forward, core))
}
