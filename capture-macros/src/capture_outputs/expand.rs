//! What `#[capture_outputs]` generates.

use super::leave::leave_when_complete;
use super::model::Forward;
use super::validate::is_nameable;
use crate::shared::placed;
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{Ident, ImplItemFn, Lifetime, ReturnType, Signature, Type, TypeReference, parse_quote, parse_quote_spanned};

/// The lints that the user's own types and arguments could set off once more.
fn lints() -> TokenStream {
    quote!(#[allow(dead_code, deprecated, clippy::all, clippy::pedantic)])
}

pub(super) fn expand(forward: &Forward, core: &TokenStream) -> TokenStream {
    let methods = [
        outer(forward, core),
        captures(forward, core),
        returned(forward, core),
        plan(forward, core),
        runner(forward, core),
        parts(forward, core),
        body(forward, core),
        output(&forward.output),
    ];
    let conditions = &forward.conditions;
    let conditions = quote!(#(#conditions)*);
    quote!(#( #conditions #methods )*)
}

/// `<Result<Output, Error> as Fallible>`, with the span of the user's type: an error in it is the same error in each
/// method, and reported once.
fn fallible(forward: &Forward, core: &TokenStream) -> TokenStream {
    let (output, core) = (&forward.output, placed(core, forward.output.span()));
    quote_spanned!(output.span()=> <#output as #core::capture::Fallible>)
}

/// The request as an argument of the runtime's functions.
fn request(forward: &Forward) -> TokenStream {
    let name = &forward.request.name;
    if forward.request.is_reference { quote!(#name) } else { quote!(&::core::clone::Clone::clone(&#name)) }
}

fn options(forward: &Forward, core: &TokenStream) -> TokenStream {
    let tie = forward.tie;
    let flags = forward.flags.iter().map(|(name, key)| {
        let core = placed(core, name.span());
        let flag = quote_spanned!(name.span()=> #core::capture::Flag::from(::core::clone::Clone::clone(&#name)));
        quote!((#key, #flag))
    });
    quote!(&#core::__private::Options { tie: #tie, arguments: &[#(#flags),*] })
}

/// A call of the body, as a plain `Result`.
fn run_body(forward: &Forward, core: &TokenStream) -> TokenStream {
    let (fallible, this, names, body) =
        (fallible(forward, core), &forward.this, &forward.names, &forward.body.sig.ident);
    quote_spanned!(forward.output.span()=> || #fallible::into_result(#this.#body(#(#names),*)))
}

/// The user's method, as its callers see it.
fn outer(forward: &Forward, core: &TokenStream) -> TokenStream {
    let Forward { attrs, vis, outer, this, .. } = forward;
    let (runner, parts, request, options, body) = (
        forward.hidden("runner"),
        forward.hidden("parts"),
        request(forward),
        options(forward, core),
        run_body(forward, core),
    );
    let from_result = {
        let fallible = fallible(forward, core);
        quote_spanned!(forward.output.span()=> #fallible::from_result)
    };
    quote! {
        #(#attrs)*
        #[allow(clippy::useless_conversion)]
        #vis #outer {
            let (__capture_model, __capture_config) = #this.#parts();
            #from_result(#core::__private::Runs::run(&#this.#runner(), __capture_model, __capture_config, #request, #options, #body))
        }
    }
}

/// The same method under another name, with another value in its `Result`.
fn sibling(forward: &Forward, name: Ident, value: &TokenStream, core: &TokenStream) -> Signature {
    let (fallible, span) = (fallible(forward, core), forward.output.span());
    let (output, error) = (quote_spanned!(span=> #fallible::Output), quote_spanned!(span=> #fallible::Error));
    let mut sig = forward.outer.clone();
    sig.ident = name;
    let core = placed(core, span);
    sig.output = parse_quote_spanned!(span=> -> ::core::result::Result<#core::capture::#value<#output>, #error>);
    sig
}

fn captures(forward: &Forward, core: &TokenStream) -> TokenStream {
    let Forward { vis, this, outer, .. } = forward;
    let sig = sibling(forward, forward.beside("captures"), &quote!(Captures), core);
    let (runner, parts, request, options, body, lints) = (
        forward.hidden("runner"),
        forward.hidden("parts"),
        request(forward),
        options(forward, core),
        run_body(forward, core),
        lints(),
    );
    let doc = format!(
        "Runs [`{0}`](Self::{0}) for its recorded values alone: it stops once they are there, and what it would have \
         computed after that is not in the result.\n\n# Errors\n\nThose of `{0}`.",
        outer.ident
    );
    quote! {
        #[doc = #doc]
        #lints
        #vis #sig {
            let (__capture_model, __capture_config) = #this.#parts();
            #core::__private::Runs::run_captures(&#this.#runner(), __capture_model, __capture_config, #request, #options, #body)
        }
    }
}

fn returned(forward: &Forward, core: &TokenStream) -> TokenStream {
    let Forward { vis, this, names, outer, .. } = forward;
    let sig = sibling(forward, forward.beside("returned"), &quote!(Returned), core);
    let (runner, parts, request, fallible, name, lints) = (
        forward.hidden("runner"),
        forward.hidden("parts"),
        request(forward),
        fallible(forward, core),
        &outer.ident,
        lints(),
    );
    let call = quote_spanned!(forward.output.span()=> || #fallible::into_result(#this.#name(#(#names),*)));
    let doc = format!(
        "Runs [`{0}`](Self::{0}) and gives its output as `return_dict` says: the struct, or the tuple of its present \
         fields.\n\n# Errors\n\nThose of `{0}`.",
        outer.ident
    );
    quote! {
        #[doc = #doc]
        #lints
        #vis #sig {
            let (_, __capture_config) = #this.#parts();
            #core::__private::Runs::returned(&#this.#runner(), __capture_config, #request, #call)
        }
    }
}

fn plan(forward: &Forward, core: &TokenStream) -> TokenStream {
    let (vis, name, parts, lints) = (&forward.vis, forward.beside("plan"), forward.hidden("parts"), lints());
    let doc = format!(
        "Which slots a request would record in [`{0}`](Self::{0}); runs nothing.\n\n# Errors\n\nWhat can be known of a \
         request that cannot be met before anything runs.",
        forward.outer.ident
    );
    quote! {
        #[doc = #doc]
        #lints
        #vis fn #name(&self, kwargs: &#core::capture::ForwardKwargs) -> ::core::result::Result<#core::capture::CapturePlan, #core::capture::CaptureError> {
            let (__capture_model, __capture_config) = self.#parts();
            #core::__private::plan(__capture_model, __capture_config, kwargs)
        }
    }
}

/// The types of the result, checked in this one place, where they are written: a mistake is one error, not one for each
/// method.
fn runner(forward: &Forward, core: &TokenStream) -> TokenStream {
    let (output, fallible, lints) = (&forward.output, fallible(forward, core), lints());
    let (name, this, span) = (forward.hidden("runner"), &forward.this, output.span());
    let core = placed(core, span);
    // the error's type may mention them
    let lifetimes = forward.outer.generics.lifetimes();
    quote_spanned! {span=>
        #[doc(hidden)]
        #lints
        #[inline]
        fn #name<#(#lifetimes),*>(&#this) -> impl #core::__private::Runs<#fallible::Output, #fallible::Error> {
            #core::__private::Runner::of::<#output>()
        }
    }
}

/// The model and its config, for the same reason.
fn parts(forward: &Forward, core: &TokenStream) -> TokenStream {
    let (name, this, lints) = (forward.hidden("parts"), &forward.this, lints());
    let config = match &forward.config {
        Some(config) => config.to_token_stream(),
        None => quote_spanned!(this.span()=> #this.config),
    };
    quote! {
        #[doc(hidden)]
        #lints
        #[inline]
        fn #name(&#this) -> (&impl #core::capture::CanRecordOutputs, &impl #core::capture::ConfigDefaults) {
            (#this, &#config)
        }
    }
}

/// The user's own body.
fn body(forward: &Forward, core: &TokenStream) -> TokenStream {
    let mut body = forward.body.clone();
    leave_when_complete(&mut body.block, core);
    // the outer method reads these, so they are not unused where the body does not
    let (request, flags) = (&forward.request.name, forward.flags.iter().map(|(name, _)| name));
    body.block.stmts.insert(0, parse_quote!(let _ = (&#request, #(&#flags),*);));
    quote! {
        #[doc(hidden)]
        #[allow(clippy::unnecessary_wraps, clippy::too_many_arguments)]
        #body
    }
}

/// Tells `#[derive(CanRecordOutputs)]` what this method returns. Never called.
fn output(output: &Type) -> TokenStream {
    let mut output = output.clone();
    Static.visit_type_mut(&mut output);
    let lints = lints();
    quote! {
        #[doc(hidden)]
        #lints
        pub(crate) fn __capture_output() -> &'static #output { ::core::unreachable!() }
    }
}

/// What a method with mistakes is to the model's derive.
pub(super) fn instead(function: &ImplItemFn) -> TokenStream {
    match &function.sig.output {
        ReturnType::Type(_, ty) if is_nameable(function) => output(ty),
        _ => TokenStream::new(),
    }
}

/// A function without arguments has no lifetimes to borrow for.
struct Static;

impl VisitMut for Static {
    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        *lifetime = Lifetime::new("'static", lifetime.span());
    }
    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        reference.lifetime.get_or_insert_with(|| Lifetime::new("'static", Span::call_site()));
        syn::visit_mut::visit_type_reference_mut(self, reference);
    }
}
