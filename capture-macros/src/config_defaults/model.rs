//! What is understood of a config.

use crate::shared::Errors;
use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::{Data, DeriveInput, Fields, Generics, Type};

/// Fields that answer for themselves.
const SETTINGS: [&str; 4] = ["return_dict", "tie_last_hidden_states", "use_cache", "is_causal"];

pub(super) struct Config<'a> {
    pub(super) ident: &'a Ident,
    pub(super) generics: &'a Generics,
    /// What to record: key and field.
    pub(super) flags: Vec<(String, Default<'a>)>,
    pub(super) settings: Vec<Default<'a>>,
}

pub(super) struct Default<'a> {
    pub(super) ident: &'a Ident,
    pub(super) ty: &'a Type,
}

impl<'a> Config<'a> {
    pub(super) fn new(input: &'a DeriveInput, errors: &mut Errors) -> Self {
        let mut config =
            Self { ident: &input.ident, generics: &input.generics, flags: Vec::new(), settings: Vec::new() };
        let Data::Struct(data) = &input.data else {
            errors.at(
                input.ident.span(),
                format!(
                    "a config is a struct; if this one has no defaults, write `impl ConfigDefaults for {} {{}}`",
                    input.ident
                ),
            );
            return config;
        };
        let Fields::Named(fields) = &data.fields else {
            errors.at(input.ident.span(), format!("a config's defaults are found by the names of its fields; if it has none, write `impl ConfigDefaults for {} {{}}`", input.ident));
            return config;
        };
        for field in &fields.named {
            let Some(ident) = &field.ident else { continue };
            let default = Default { ident, ty: &field.ty };
            let name = ident.unraw().to_string();
            match name.strip_prefix("output_") {
                Some(key) if !key.is_empty() => config.flags.push((key.to_owned(), default)),
                _ if SETTINGS.contains(&name.as_str()) => config.settings.push(default),
                _ => {}
            }
        }
        config
    }
}
