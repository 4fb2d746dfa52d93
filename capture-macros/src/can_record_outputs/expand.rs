//! What `#[derive(CanRecordOutputs)]` generates.

use super::model::{Class, Entry, Model, Target};
use crate::shared::placed;
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{GenericParam, LitStr, parse_quote};

pub(super) fn expand(model: &Model<'_>, core: &TokenStream) -> TokenStream {
    let Model { ident, generics, recorders, modules, entries } = model;
    let mut generics = (*generics).clone();
    if generics.params.iter().any(|param| !matches!(param, GenericParam::Lifetime(_))) {
        // which parameters are modules is not known here
        let (_, ty, _) = generics.split_for_impl();
        let predicate = parse_quote!(#ident #ty: #core::__private::Module + 'static);
        generics.make_where_clause().predicates.push(predicate);
    }
    let (impl_generics, ty, clause) = generics.split_for_impl();
    let name = ident.unraw().to_string();
    let recorded =
        entries.iter().flat_map(|entry| entry.targets.iter().map(move |target| recorder(ident, entry, target, core)));
    let field = match recorders {
        Some(field) => quote!(&self.#field),
        None => quote!(::core::unreachable!()),
    };
    quote! {
        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        impl #impl_generics #core::capture::CanRecordOutputs for #ident #ty #clause {
            const MODEL: &'static str = #name;
            #[allow(unused_braces)]
            const RECORDERS: &'static [#core::capture::OutputRecorder] = {
                #[allow(unused_imports)]
                use #core::__private::{InResult as _, NoCaptureOutputs as _, NotInResult as _};
                &[#(#recorded),*]
            };
            fn output_recorders(&self) -> &#core::capture::OutputRecorders {
                #field
            }
            fn __first_device(&self) -> ::core::option::Option<#core::__private::Device> {
                #[allow(unused_imports)]
                use #core::__private::{DeviceByWalk as _, NoDevice as _};
                ::core::option::Option::None
                    #(.or_else(|| (&#core::__private::DeviceOf(&self.#modules)).get()))*
            }
        }
    }
}

/// One expression with each part at the user's own tokens: class, index, key.
fn recorder(model: &Ident, entry: &Entry, target: &Target, core: &TokenStream) -> TokenStream {
    let (key, field) = (entry.key(), &entry.key);
    // one span for all keys: a model without `#[capture_outputs]` is told so once
    let output = quote_spanned!(model.span()=> Self::__capture_output());
    let probe = quote_spanned!(field.span()=> { || &#output.__capture_read().#field });
    let place = placed(core, field.span());
    let probe = quote_spanned!(field.span()=> #place::capture::Key::__new(#key, #probe));
    let (index, index_span) = target.index.unwrap_or((entry.default_index(), target.span));
    let mut index = Literal::isize_suffixed(index);
    index.set_span(index_span);
    let made = match &target.class {
        Class::Path(class) => {
            quote_spanned!(class.span()=> #probe.__class::<#class, #index>())
        }
        Class::Name(class) => {
            quote_spanned!(class.span()=> #probe.__name(#class, #index))
        }
    };
    let layer_name = target.layer_name.as_ref().map(|name| quote!(.__layer_name(#name)));
    let initial = target.initial.as_ref().map(|initial| quote!(.__initial(#initial)));
    let count = target.num_hidden_layers_key.as_ref().map(|path| count(path, core));
    quote!(#made #layer_name #initial #count)
}

/// Reads the number of layers from the config; a field that is not there is reported at the text that names it.
fn count(path: &LitStr, core: &TokenStream) -> TokenStream {
    let span = path.span();
    let fields = path.value();
    let fields = fields.split('.').filter_map(|field| {
        let mut field: Ident = syn::parse_str(field).ok()?;
        field.set_span(span);
        Some(field)
    });
    let fields = quote_spanned!(span=> #(.#fields)*);
    // a name of ours has our hygiene, also where the text comes out of a `macro_rules!`
    let model = Ident::new("__capture_model", Span::call_site());
    let number = quote_spanned!(span=> #core::__private::LayerCount::layer_count({ &#model.config #fields }));
    quote!(.__num_hidden_layers(|#model| {
        let #model = #model.downcast_ref::<Self>()?;
        #number
    }))
}
