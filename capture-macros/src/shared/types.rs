use proc_macro2::{Group, Spacing, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Ident, PathSegment, Type};

/// The last segment of a type's path. Looks through references, parentheses, and the groups in which
/// `macro_rules!` hands types on.
pub(crate) fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match ty {
        Type::Reference(reference) => last_segment(&reference.elem),
        Type::Paren(paren) => last_segment(&paren.elem),
        Type::Group(group) => last_segment(&group.elem),
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    }
}

pub(crate) fn last_ident(ty: &Type) -> Option<&Ident> {
    last_segment(ty).map(|segment| &segment.ident)
}

/// Whether `ty` cannot be an alias of a `Result`. What could be one is left to the compiler.
pub(crate) fn is_certainly_no_result(ty: &Type) -> bool {
    match ty {
        Type::Paren(paren) => is_certainly_no_result(&paren.elem),
        Type::Group(group) => is_certainly_no_result(&group.elem),
        Type::Path(path) => {
            path.path.segments.last().is_some_and(|segment| {
                ["Option", "Tensor", "Vec", "Box", "Self"].iter().any(|name| segment.ident == name)
            })
        }
        Type::Macro(_) | Type::Verbatim(_) | Type::Infer(_) => false,
        _ => true,
    }
}

/// Tokens as a person would write them, for messages.
pub(crate) fn readable(tokens: &impl ToTokens) -> String {
    let text = tokens.to_token_stream().to_string();
    [
        (" < ", "<"),
        (" <", "<"),
        ("< ", "<"),
        (" >", ">"),
        (" :: ", "::"),
        ("& ", "&"),
        (" ,", ","),
        ("( ", "("),
        (" )", ")"),
    ]
    .iter()
    .fold(text, |text, (from, to)| text.replace(from, to))
}

/// `tokens` with the place of `span`, so that an error in what is built of them is shown there.
pub(crate) fn placed(tokens: &TokenStream, span: Span) -> TokenStream {
    let place = |mut token: TokenTree| {
        token.set_span(span);
        token
    };
    tokens.clone().into_iter().map(place).collect()
}

/// Names `class` where `tokens` say `Self`, which means something else inside another trait or `impl`.
pub(crate) fn without_self(tokens: TokenStream, class: &TokenStream) -> TokenStream {
    let mut tokens = tokens.into_iter().peekable();
    let mut named = TokenStream::new();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(ident) if ident == "Self" => {
                let in_path = matches!(tokens.peek(), Some(TokenTree::Punct(punct)) if punct.as_char() == ':' && punct.spacing() == Spacing::Joint);
                named.extend(if in_path { quote!(<#class>) } else { class.clone() });
            }
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), without_self(group.stream(), class));
                inner.set_span(group.span());
                named.extend([TokenTree::Group(inner)]);
            }
            token => named.extend([token]),
        }
    }
    named
}
