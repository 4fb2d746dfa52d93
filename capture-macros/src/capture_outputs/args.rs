use crate::shared::Errors;
use darling::FromMeta;
use darling::ast::NestedMeta;
use proc_macro2::TokenStream;
use syn::{Expr, ExprLit, Ident, Lit, Meta};

/// `#[capture_outputs(…)]`.
#[derive(FromMeta)]
pub(super) struct Args {
    /// The last hidden state is the output's `last_hidden_state`, unless the config says otherwise.
    #[darling(default = || true, with = boolean)]
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

fn boolean(meta: &Meta) -> darling::Result<bool> {
    let wrong = || darling::Error::custom("`tie_last_hidden_states` is `true` or `false`");
    match meta {
        Meta::NameValue(pair) => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Bool(on), .. }) => Ok(on.value),
            value => Err(wrong().with_span(value)),
        },
        meta => Err(wrong().with_span(meta)),
    }
}
