//! Where the generated code finds the runtime, in whatever way the user's crate depends on it.

use proc_macro_crate::FoundCrate;
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Error, Ident};

/// The path of `patching_core` in the crate that is being compiled.
pub(crate) fn root() -> syn::Result<TokenStream> {
    find(|package| proc_macro_crate::crate_name(package).ok()).ok_or_else(|| {
        Error::new(
            Span::call_site(),
            "this macro's code needs the runtime: add `patching-core`, or `burnlens` or `burn-models`, which re-export it, to this crate's dependencies",
        )
    })
}

/// `lookup` says under which name a package is known.
fn find(lookup: impl Fn(&str) -> Option<FoundCrate>) -> Option<TokenStream> {
    let named = |package: &str| {
        let name = match lookup(package)? {
            // a package's tests and examples see its library by name, and it names itself so
            FoundCrate::Itself => package.replace('-', "_"),
            FoundCrate::Name(name) => name,
        };
        let name: Ident = syn::parse_str(&name).ok()?;
        Some(quote!(::#name))
    };
    named("patching-core").or_else(|| {
        let outer = named("burnlens").or_else(|| named("burn-models"))?;
        Some(quote!(#outer::patching_core))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(known: &[(&str, FoundCrate)]) -> Option<String> {
        let lookup = |package: &str| known.iter().find(|(name, _)| *name == package).map(|(_, found)| found.clone());
        find(lookup).map(|path| path.to_string().replace(' ', ""))
    }

    #[test]
    fn the_runtime_is_found_directly_or_through_a_crate_that_re_exports_it() {
        let name = |name: &str| FoundCrate::Name(name.to_owned());
        assert_eq!(
            path(&[("patching-core", name("patching_core")), ("burnlens", name("burnlens"))]).as_deref(),
            Some("::patching_core")
        );
        assert_eq!(path(&[("patching-core", name("core_of_it"))]).as_deref(), Some("::core_of_it"));
        assert_eq!(path(&[("patching-core", FoundCrate::Itself)]).as_deref(), Some("::patching_core"));
        assert_eq!(path(&[("burnlens", name("lens"))]).as_deref(), Some("::lens::patching_core"));
        assert_eq!(path(&[("burn-models", name("burn_models"))]).as_deref(), Some("::burn_models::patching_core"));
        assert_eq!(path(&[]), None);
    }
}
