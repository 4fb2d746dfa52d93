//! `#[derive(ModelOutput)]`.

mod expand;
mod model;
mod validate;

use crate::shared::{Errors, Failure};
use proc_macro2::TokenStream;
use syn::DeriveInput;

pub(crate) fn entry(item: TokenStream, core: &TokenStream) -> Result<TokenStream, Failure> {
    let input: DeriveInput = syn::parse2(item)?;
    let mut errors = Errors::default();
    let output = validate::check(&input, &mut errors);
    errors.check(|| expand::instead(&input, core))?;
    Ok(expand::expand(&output, core))
}
