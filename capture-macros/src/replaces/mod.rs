//! `#[replaces]`.

mod args;
mod expand;
mod model;
mod validate;

use crate::shared::{Errors, Failure};
use model::Replacement;
use proc_macro2::TokenStream;
use syn::{Error, ItemImpl};

pub(crate) fn entry(args: TokenStream, item: TokenStream, core: &TokenStream) -> Result<TokenStream, Failure> {
    let belongs = "`#[replaces(…)]` belongs on the `impl` block that holds `new` and `forward`";
    let item: ItemImpl = syn::parse2(item.clone()).map_err(|_| Error::new_spanned(item, belongs))?;
    let mut errors = Errors::default();
    let classes = args::parse(args, &mut errors);
    let found = validate::check(&item, &mut errors);
    errors.check(TokenStream::new)?;
    let replacement = Replacement::new(&item, &found, classes)?;
    Ok(expand::expand(&item, &replacement, core))
}
