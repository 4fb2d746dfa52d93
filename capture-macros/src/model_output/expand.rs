//! What `#[derive(ModelOutput)]` generates.

use super::model::{Kind, Output};
use crate::shared::choices;
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::DeriveInput;
use syn::ext::IdentExt;
use syn::spanned::Spanned;

pub(super) fn expand(output: &Output<'_>, core: &TokenStream) -> TokenStream {
    let (new, model_output, output_field) = (new(output), model_output(output, core), output_field(output, core));
    quote!(#new #model_output #output_field)
}

/// A constructor from what `forward` computes in any case.
fn new(output: &Output<'_>) -> TokenStream {
    let Output { ident, vis, .. } = output;
    let (required, types): (Vec<_>, Vec<_>) = output.of(Kind::Required).map(|field| (field.ident, field.ty)).unzip();
    let optional = output.of(Kind::Optional).map(|field| field.ident);
    let captured = output.of(Kind::Captured).map(|field| field.ident);
    let rest: Vec<String> = output.of(Kind::Optional).map(|field| field.name()).collect();
    let mut doc = "An output with these values and nothing recorded".to_owned();
    if !rest.is_empty() {
        doc += &format!("; {} left out", choices(&rest.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    doc += ".";
    quote! {
        impl #ident {
            #[doc = #doc]
            #[allow(dead_code, clippy::all, clippy::pedantic)]
            #vis fn new(#(#required: #types),*) -> Self {
                Self {
                    #(#required,)*
                    #(#optional: ::core::option::Option::None,)*
                    #(#captured: ::core::default::Default::default(),)*
                }
            }
        }
    }
}

fn model_output(output: &Output<'_>, core: &TokenStream) -> TokenStream {
    let ident = output.ident;
    let name = ident.unraw().to_string();
    let fields = output.fields.iter().map(|field| {
        let (name, ident) = (field.name(), field.ident);
        // a type that cannot be a field is reported where it is written
        let value = quote_spanned!(field.ty.span()=> &self.#ident);
        quote!(#core::__private::Field::new(#name, #value))
    });
    let (captured, keys): (Vec<_>, Vec<_>) = output.of(Kind::Captured).map(|field| (field.ident, field.name())).unzip();
    let tie = output.can_tie().then(|| {
        quote! {
            fn __tie(&mut self, __capture_keep: #core::capture::Keep) {
                if let ::core::option::Option::Some(__capture_last) = #core::capture::Element::value(&self.last_hidden_state, __capture_keep) {
                    self.hidden_states.__tie(&__capture_last);
                }
            }
        }
    });
    quote! {
        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        impl #core::capture::ModelOutput for #ident {
            const NAME: &'static str = #name;
            const KEYS: &'static [&'static str] = &[#(#keys),*];
            fn __fields(&self) -> ::std::vec::Vec<#core::__private::Field> {
                ::std::vec![#(#fields),*]
            }
            fn __fill(&mut self, __capture_key: &str, __capture_raw: #core::__private::Raw) -> ::core::result::Result<(), #core::capture::CaptureError> {
                match __capture_key {
                    #(#keys => self.#captured.__fill(__capture_key, __capture_raw),)*
                    _ => ::core::result::Result::Err(#core::capture::CaptureError::NoField {
                        output: Self::NAME,
                        key: ::std::string::String::from(__capture_key),
                        fields: Self::KEYS.to_vec(),
                    }),
                }
            }
            fn __take(&mut self, __capture_key: &str) -> ::core::option::Option<#core::__private::Raw> {
                match __capture_key {
                    #(#keys => self.#captured.__take(),)*
                    _ => ::core::option::Option::None,
                }
            }
            #tie
        }
    }
}

/// An output may be a field of another.
fn output_field(output: &Output<'_>, core: &TokenStream) -> TokenStream {
    let ident = output.ident;
    quote! {
        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        impl #core::capture::OutputField for #ident {
            fn output_value(&self) -> ::core::option::Option<#core::capture::OutputValue> {
                ::core::option::Option::Some(#core::capture::OutputValue::Nested(#core::capture::ModelOutput::to_tuple(self)))
            }
        }
    }
}

/// What an output that has mistakes is to the rest of the program.
pub(super) fn instead(input: &DeriveInput, core: &TokenStream) -> TokenStream {
    let ident = &input.ident;
    let mut generics = input.generics.clone();
    let (_, ty, _) = input.generics.split_for_impl();
    generics.make_where_clause().predicates.push(syn::parse_quote!(#ident #ty: 'static));
    let (impl_generics, ty, clause) = generics.split_for_impl();
    quote! {
        impl #impl_generics #core::capture::ModelOutput for #ident #ty #clause {
            const NAME: &'static str = "";
            const KEYS: &'static [&'static str] = &[];
            fn __fields(&self) -> ::std::vec::Vec<#core::__private::Field> { ::core::unreachable!() }
            fn __fill(&mut self, _: &str, _: #core::__private::Raw) -> ::core::result::Result<(), #core::capture::CaptureError> { ::core::unreachable!() }
            fn __take(&mut self, _: &str) -> ::core::option::Option<#core::__private::Raw> { ::core::unreachable!() }
        }
    }
}
