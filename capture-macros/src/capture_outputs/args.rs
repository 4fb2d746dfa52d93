use crate::shared::Errors;
use darling::FromMeta;
use darling::ast::NestedMeta;
use proc_macro2::TokenStream;
use syn::{Expr, Ident};

/// `#[capture_outputs(…)]`.
#[derive(FromMeta)]
pub(super) struct Args {
    /// The last hidden state is the output's `last_hidden_state`, unless the config says otherwise.
    #[darling(default = || true)]
    pub(super) tie_last_hidden_states: bool,
    /// Where the config is, if not in `self.config`.
    #[darling(default)]
    pub(super) config: Option<Expr>,
    /// Which argument is the request, where that is not clear.
    #[darling(default)]
    pub(super) kwargs: Option<Ident>,
}

impl Args {
    /// As if there were none where something is wrong, so that the rest can be checked too.
    pub(super) fn parse(tokens: TokenStream, errors: &mut Errors) -> Self {
        let parsed =
            NestedMeta::parse_meta_list(tokens).map_err(darling::Error::from).and_then(|list| Self::from_list(&list));
        parsed.unwrap_or_else(|error| {
            errors.push(error.into());
            Self { tie_last_hidden_states: true, config: None, kwargs: None }
        })
    }
}
