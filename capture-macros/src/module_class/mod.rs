//! `#[module_class]`.

mod expand;
mod model;
mod validate;

use crate::shared::{Errors, Failure};
use model::Class;
use proc_macro2::TokenStream;
use syn::{Error, ItemImpl};

pub(crate) fn entry(args: TokenStream, item: TokenStream, core: &TokenStream) -> Result<TokenStream, Failure> {
    let belongs = "`#[module_class]` belongs on the `impl` block that holds `new` and `forward`";
    let item: ItemImpl = syn::parse2(item.clone()).map_err(|_| Error::new_spanned(item, belongs))?;
    let mut errors = Errors::default();
    if !args.is_empty() {
        errors.on(args, "`#[module_class]` takes no arguments: write `#[module_class]`");
    }
    let found = validate::check(&item, &mut errors);
    errors.check(|| expand::instead(&item, &found, core))?;
    let class = Class::new(&item, &found)?;
    Ok(expand::expand(&item, &class, core))
}
