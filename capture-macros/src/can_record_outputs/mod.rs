//! `#[derive(CanRecordOutputs)]` and its `#[can_record_outputs(…)]`.

mod args;
mod expand;
mod model;
mod validate;

use crate::shared::{Errors, Failure};
use proc_macro2::TokenStream;
use syn::DeriveInput;

pub(crate) fn entry(item: TokenStream, core: &TokenStream) -> Result<TokenStream, Failure> {
    let input: DeriveInput = syn::parse2(item)?;
    let mut errors = Errors::default();
    let entries = args::parse(&input.attrs, &mut errors);
    let model = validate::check(&input, entries, &mut errors);
    let expanded = expand::expand(&model, core);
    // what is right of the declaration is declared: the compiler checks that too, and the model remains one
    errors.check(|| expanded.clone())?;
    Ok(expanded)
}
