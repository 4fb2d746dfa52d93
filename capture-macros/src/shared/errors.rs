use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use std::fmt::Display;
use syn::Error;

/// All mistakes of one item, so that they are reported together.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    pub(crate) fn at(&mut self, span: Span, message: impl Display) {
        self.push(Error::new(span, message));
    }

    /// The error underlines all of `tokens`.
    pub(crate) fn on(&mut self, tokens: impl ToTokens, message: impl Display) {
        self.push(Error::new_spanned(tokens, message));
    }

    pub(crate) fn push(&mut self, error: Error) {
        match &mut self.0 {
            Some(all) => all.combine(error),
            None => self.0 = Some(error),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// `instead`: see [`Failure::instead`].
    pub(crate) fn check(self, instead: impl FnOnce() -> TokenStream) -> Result<(), Failure> {
        match self.0 {
            None => Ok(()),
            Some(error) => Err(Failure { error: Some(error), instead: instead() }),
        }
    }
}

/// Mistakes, and what the program needs so that they have no consequences elsewhere.
#[derive(Debug)]
pub(crate) struct Failure {
    error: Option<Error>,
    /// Stands for what would have been generated: it keeps what depends on it from being reported too.
    instead: TokenStream,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error: Some(error), instead: TokenStream::new() }
    }
}

impl Failure {
    /// The user's item stays in the program.
    pub(crate) fn beside(self, item: TokenStream) -> TokenStream {
        let (instead, errors) = (self.instead, self.error.map(Error::into_compile_error));
        // what the macro would have used is not unused
        let lints = (!item.is_empty()).then(|| quote!(#[allow(unused_variables, dead_code)]));
        quote!(#lints #item #instead #errors)
    }
}
