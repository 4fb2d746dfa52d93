use crate::shared::{Errors, did_you_mean};
use proc_macro2::TokenStream;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Expr, Ident, Token};

/// `#[merge_with_config_defaults(name, …, config = self.settings, kwargs = name)]`.
#[derive(Default)]
pub(super) struct Args {
    /// Arguments to merge besides those that are known by name.
    pub(super) names: Vec<Ident>,
    /// Where the config is, if not in `self.config`.
    pub(super) config: Option<Expr>,
    /// Which `ForwardKwargs` is meant.
    pub(super) kwargs: Option<Ident>,
}

enum Arg {
    Name(Ident),
    Setting(Ident, Expr),
}

impl Parse for Arg {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let name: Ident = input.parse()?;
        if !input.peek(Token![=]) {
            return Ok(Self::Name(name));
        }
        input.parse::<Token![=]>()?;
        Ok(Self::Setting(name, input.parse()?))
    }
}

impl Args {
    pub(super) fn parse(tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut args = Self::default();
        let parsed = Punctuated::<Arg, Token![,]>::parse_terminated.parse2(tokens);
        for arg in parsed.map_err(|error| errors.push(error)).into_iter().flatten() {
            match arg {
                Arg::Name(name) if args.names.contains(&name) => {
                    errors.at(name.span(), format!("`{name}` is named twice: remove this one"))
                }
                Arg::Name(name) => args.names.push(name),
                Arg::Setting(name, value) => args.set(&name, value, errors),
            }
        }
        args
    }

    fn set(&mut self, name: &Ident, value: Expr, errors: &mut Errors) {
        let twice = match name.to_string().as_str() {
            "config" => self.config.replace(value).is_some(),
            "kwargs" => match syn::parse2(quote::ToTokens::to_token_stream(&value)) {
                Ok(argument) => self.kwargs.replace(argument).is_some(),
                Err(_) => {
                    errors.on(&value, "`kwargs` is the name of an argument: write `kwargs = name`");
                    false
                }
            },
            other => {
                errors.at(
                    name.span(),
                    format!("unknown argument `{other}`: {}", did_you_mean(other, &["config", "kwargs"])),
                );
                false
            }
        };
        if twice {
            errors.at(name.span(), format!("`{name}` is set twice: remove this one"));
        }
    }
}
