//! `#[derive(CanRecordOutputs)]` and `#[derive(ModelOutput)]`.
use darling::FromDeriveInput;
use darling::ast::Data;
use darling::util::Ignored;
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{DeriveInput, Error, Expr, Ident, Lit, Path, Result, Token, Type, parse2};

struct Entry {
    key: Ident,
    targets: Vec<Target>,
}
enum Class {
    Path(Path),
    Name(syn::LitStr),
}
struct Target {
    class: Class,
    index: Option<(isize, Span)>,
    layer_name: Option<syn::LitStr>,
    initial: bool,
    span: Span,
}

impl Parse for Entry {
    fn parse(s: ParseStream) -> Result<Self> {
        let key: Ident = s.parse()?;
        s.parse::<Token![=]>()?;
        let value: Expr = s.parse()?;
        let targets = match value {
            Expr::Array(a) => a.elems.into_iter().map(target).collect::<Result<_>>()?,
            e => vec![target(e)?],
        };
        Ok(Self { key, targets })
    }
}
const ARGS: [&str; 4] = ["index", "layer_name", "capture_initial_hidden_state", "num_hidden_layers_key"];
fn target(e: Expr) -> Result<Target> {
    let span = e.span();
    let plain = |class| Target { class, index: None, layer_name: None, initial: true, span };
    match e {
        Expr::Path(p) => Ok(plain(Class::Path(p.path))),
        Expr::Lit(l) => match l.lit {
            Lit::Str(s) => Ok(plain(Class::Name(s))),
            l => Err(Error::new(l.span(), "a class, a class name in quotes, or `OutputRecorder(…)`")),
        },
        Expr::Call(c) if matches!(&*c.func, Expr::Path(p) if p.path.is_ident("OutputRecorder")) => {
            let mut args = c.args.into_iter();
            let first = args.next().ok_or_else(|| {
                Error::new(span, "`OutputRecorder` needs a class: `OutputRecorder(SomeClass, index = 0)`")
            })?;
            let mut t = target(first)?;
            t.span = span;
            for a in args {
                let Expr::Assign(a) = a else { return Err(Error::new(a.span(), "write `name = value`")) };
                let name = a.left.to_token_stream().to_string();
                match (name.as_str(), &*a.right) {
                    ("index", r) => t.index = Some((integer(r)?, r.span())),
                    ("layer_name", Expr::Lit(l)) if matches!(l.lit, Lit::Str(_)) => {
                        if let Lit::Str(s) = &l.lit {
                            t.layer_name = Some(s.clone())
                        }
                    }
                    ("capture_initial_hidden_state", Expr::Lit(l)) if matches!(l.lit, Lit::Bool(_)) => {
                        if let Lit::Bool(b) = &l.lit {
                            t.initial = b.value
                        }
                    }
                    ("num_hidden_layers_key", _) => {}
                    ("layer_name" | "capture_initial_hidden_state", r) => {
                        return Err(Error::new(r.span(), "not a literal of the right type"));
                    }
                    (n, _) => {
                        return Err(Error::new(
                            a.left.span(),
                            match darling_near(n) {
                                Some(k) => format!("unknown argument `{n}`; did you mean `{k}`?"),
                                None => format!(
                                    "unknown argument `{n}`; there are {}",
                                    ARGS.map(|a| format!("`{a}`")).join(", ")
                                ),
                            },
                        ));
                    }
                }
            }
            Ok(t)
        }
        e => Err(Error::new(e.span(), "a class, a class name in quotes, `OutputRecorder(…)`, or a list of those")),
    }
}
fn darling_near(n: &str) -> Option<&'static str> {
    ARGS.into_iter()
        .find(|a| a.starts_with(n) || n.starts_with(a) || a.trim_end_matches('s') == n.trim_end_matches('s'))
}
fn integer(e: &Expr) -> Result<isize> {
    match e {
        Expr::Lit(l) => {
            if let Lit::Int(i) = &l.lit {
                return i.base10_parse();
            }
        }
        Expr::Unary(u) if matches!(u.op, syn::UnOp::Neg(_)) => return integer(&u.expr).map(|i| -i),
        _ => {}
    }
    Err(Error::new(e.span(), "`index` is a whole number"))
}

#[derive(FromDeriveInput)]
#[darling(supports(struct_named))]
struct Model {
    ident: Ident,
    #[allow(dead_code)]
    data: Data<Ignored, Ignored>,
    generics: syn::Generics,
}

pub fn can_record_outputs(tokens: TokenStream) -> Result<TokenStream> {
    let input: DeriveInput = parse2(tokens)?;
    let model = Model::from_derive_input(&input).map_err(Error::from)?;
    let (ident, (imp, ty, wh)) = (&model.ident, model.generics.split_for_impl());
    match entries_of(&input) {
        Ok(entries) => expand(ident, &imp, &ty, wh, entries),
        Err(e) => {
            let (e, empty) = (e.to_compile_error(), expand(ident, &imp, &ty, wh, Vec::new())?);
            Ok(quote!(#e #empty))
        }
    }
}
fn entries_of(input: &DeriveInput) -> Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    for a in input.attrs.iter().filter(|a| a.path().is_ident("can_record_outputs")) {
        entries.extend(a.parse_args_with(Punctuated::<Entry, Token![,]>::parse_terminated)?);
    }
    let mut errors: Option<Error> = None;
    for (n, e) in entries.iter().enumerate() {
        if entries[..n].iter().any(|o| o.key == e.key) {
            let new =
                Error::new(e.key.span(), format!("`{}` is declared twice; write one list: `{0} = [A, B]`", e.key));
            match &mut errors {
                Some(all) => all.combine(new),
                None => errors = Some(new),
            }
        }
    }
    match errors {
        Some(e) => Err(e),
        None => Ok(entries),
    }
}
fn expand(
    ident: &Ident,
    imp: &syn::ImplGenerics,
    ty: &syn::TypeGenerics,
    wh: Option<&syn::WhereClause>,
    entries: Vec<Entry>,
) -> Result<TokenStream> {
    let core = crate::root();
    let mut recorders = Vec::new();
    for e in &entries {
        let key = e.key.to_string();
        for t in &e.targets {
            let default = if key.contains("hidden_states") { 0 } else { 1 };
            let (index, index_span) = t.index.unwrap_or((default, t.span));
            let layer = t.layer_name.as_ref().map_or(quote!(), |l| quote!(.__layer_name(#l)));
            let initial = t.initial;
            let (field, key_span) = (&e.key, e.key.span());
            let probe = quote_spanned!(key_span=> || &Self::__capture_output().#field);
            let lit = proc_macro2::Literal::isize_suffixed(index);
            let lit = quote_spanned!(index_span=> #lit);
            let more = quote!(#layer .__initial(#initial));
            recorders.push(match &t.class {
                Class::Path(c) => { let r = quote_spanned!(c.span()=> #core::capture::OutputRecorder::__class::<#c, {#lit}, _>(#key, #probe)); quote!(#r #more) }
                Class::Name(n) => quote_spanned!(n.span()=> #core::capture::OutputRecorder::__name(#key, #n, #lit, #probe) #more),
            });
        }
    }
    let name = ident.to_string();
    Ok(quote! {
        #[automatically_derived]
        impl #imp #core::capture::CanRecordOutputs for #ident #ty #wh {
            const MODEL: &'static str = #name;
            const RECORDERS: &'static [#core::capture::OutputRecorder] = { #[allow(unused_imports)] use #core::__private::NoCaptureOutputs as _; &[#(#recorders),*] };
            fn output_recorders(&self) -> &#core::capture::OutputRecorders { &self.recorders }
        }
    })
}

pub fn model_output(tokens: TokenStream) -> Result<TokenStream> {
    let input: DeriveInput = parse2(tokens)?;
    let syn::Data::Struct(syn::DataStruct { fields: syn::Fields::Named(fields), .. }) = &input.data else {
        return Err(Error::new(input.ident.span(), "a model output is a struct with named fields"));
    };
    let last = |t: &Type| match t {
        Type::Path(p) => p.path.segments.last().map(|s| s.ident.to_string()),
        _ => None,
    };
    let (mut captured, mut optional, mut required) = (vec![], vec![], vec![]);
    for f in &fields.named {
        match last(&f.ty).as_deref() {
            Some("Captured") => captured.push(f),
            Some("Option") => optional.push(f),
            _ => required.push(f),
        }
    }
    let names = |v: &[&syn::Field]| v.iter().filter_map(|f| f.ident.clone()).collect::<Vec<_>>();
    let (cap, opt, req) = (names(&captured), names(&optional), names(&required));
    let (cap_ty, req_ty) = (captured.iter().map(|f| &f.ty), required.iter().map(|f| &f.ty));
    let keys = cap.iter().map(|i| i.to_string()).collect::<Vec<_>>();
    let all: Vec<_> = fields.named.iter().filter_map(|f| f.ident.clone()).collect();
    let all_names = all.iter().map(|i| i.to_string()).collect::<Vec<_>>();
    let (ident, vis) = (&input.ident, &input.vis);
    let name = ident.to_string();
    let core = crate::root();
    let tie = (req.iter().any(|r| r == "last_hidden_state") && cap.iter().any(|c| c == "hidden_states"))
        .then(|| quote!(fn __tie(&mut self, keep: #core::capture::Keep) { if let ::core::option::Option::Some(last) = #core::capture::Element::value(&self.last_hidden_state, keep) { self.hidden_states.__tie(&last) } }));
    let _ = &cap_ty;
    Ok(quote! {
        impl #ident {
            /// An output with these values and nothing recorded.
            #vis fn new(#(#req: #req_ty),*) -> Self { Self { #(#req,)* #(#opt: ::core::option::Option::None,)* #(#cap: ::core::default::Default::default(),)* } }
        }
        impl #core::capture::ModelOutput for #ident {
            const NAME: &'static str = #name;
            const KEYS: &'static [&'static str] = &[#(#keys),*];
            fn __fields(&self) -> ::std::vec::Vec<#core::__private::Field> { ::std::vec![#(#core::__private::Field::new(#all_names, &self.#all)),*] }
            fn __fill(&mut self, key: &str, raw: #core::__private::Raw) -> ::core::result::Result<(), #core::capture::CaptureError> {
                match key { #(#keys => self.#cap.__fill(key, raw),)* _ => ::core::result::Result::Err(#core::capture::CaptureError::NoField { output: #name, key: key.into(), fields: Self::KEYS.to_vec() }) }
            }
            fn __take(&mut self, key: &str) -> ::core::option::Option<#core::__private::Raw> { match key { #(#keys => self.#cap.__take(),)* _ => ::core::option::Option::None } }
            #tie
        }
        impl #core::capture::OutputField for #ident {
            fn output_value(&self) -> ::core::option::Option<#core::capture::OutputValue> { ::core::option::Option::Some(#core::capture::OutputValue::Nested(#core::capture::ModelOutput::to_tuple(self))) }
        }
    })
}

pub fn config_defaults(tokens: TokenStream) -> Result<TokenStream> {
    let input: DeriveInput = parse2(tokens)?;
    let syn::Data::Struct(syn::DataStruct { fields: syn::Fields::Named(fields), .. }) = &input.data else {
        return Err(Error::new(input.ident.span(), "a config is a struct with named fields"));
    };
    let core = crate::root();
    let names: Vec<_> = fields.named.iter().filter_map(|f| f.ident.clone()).collect();
    let outs: Vec<_> = names.iter().filter(|n| n.to_string().starts_with("output_")).collect();
    let keys = outs.iter().map(|n| n.to_string()["output_".len()..].to_owned());
    let ident = &input.ident;
    let rest = ["return_dict", "tie_last_hidden_states", "use_cache", "is_causal"]
        .into_iter()
        .filter_map(|n| names.iter().find(|i| *i == n))
        .map(|n| quote!(fn #n(&self) -> ::core::option::Option<bool> { ::core::convert::Into::into(self.#n) }));
    Ok(quote! {
        #[automatically_derived]
        impl #core::capture::ConfigDefaults for #ident {
            fn output_flag(&self, key: &str) -> ::core::option::Option<#core::capture::Flag> {
                match key { #(#keys => ::core::option::Option::Some(#core::capture::Flag::from(::core::clone::Clone::clone(&self.#outs))),)* _ => ::core::option::Option::None }
            }
            #(#rest)*
        }
    })
}
