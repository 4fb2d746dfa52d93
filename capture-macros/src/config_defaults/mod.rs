//! `#[derive(ConfigDefaults)]`.

mod expand;
mod model;

use crate::shared::{Errors, Failure};
use model::Config;
use proc_macro2::TokenStream;
use syn::DeriveInput;

pub(crate) fn entry(item: TokenStream, core: &TokenStream) -> Result<TokenStream, Failure> {
    let input: DeriveInput = syn::parse2(item)?;
    let mut errors = Errors::default();
    let config = Config::new(&input, &mut errors);
    let expanded = expand::expand(&config, core);
    // a config that is no struct has no defaults, but is one
    errors.check(|| expanded.clone())?;
    Ok(expanded)
}
