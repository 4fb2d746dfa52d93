//! `#[capture_outputs]` and `#[merge_with_config_defaults]`.
use darling::{FromMeta, ast::NestedMeta};
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Block, Error, Expr, FnArg, Ident, ImplItemFn, Pat, PatType, Result, ReturnType, Stmt, Type, parse_quote, parse2,
};

#[derive(FromMeta)]
#[darling(derive_syn_parse)]
struct CaptureArgs {
    #[darling(default = || true)]
    tie_last_hidden_states: bool,
    #[darling(default)]
    config: Option<Expr>,
    #[darling(default)]
    kwargs: Option<Ident>,
}
fn arguments(f: &ImplItemFn) -> impl Iterator<Item = (&PatType, Option<&Ident>)> {
    f.sig.inputs.iter().filter_map(|a| match a {
        FnArg::Typed(t) => Some((
            t,
            match &*t.pat {
                Pat::Ident(p) => Some(&p.ident),
                _ => None,
            },
        )),
        _ => None,
    })
}
fn type_name(t: &Type) -> Option<&Ident> {
    match t {
        Type::Reference(r) => type_name(&r.elem),
        Type::Path(p) => p.path.segments.last().map(|s| &s.ident),
        _ => None,
    }
}

pub fn capture_outputs(args: TokenStream, tokens: TokenStream) -> Result<TokenStream> {
    let args: CaptureArgs = match NestedMeta::parse_meta_list(args)
        .map_err(darling::Error::from)
        .and_then(|l| CaptureArgs::from_list(&l))
    {
        Ok(a) => a,
        Err(e) => return Err(e.into()),
    };
    let mut f: ImplItemFn = parse2(tokens)?;
    if f.sig.receiver().is_none() {
        return Err(Error::new(f.sig.paren_token.span.join(), "`#[capture_outputs]` belongs on a method with `&self`"));
    }
    let ReturnType::Type(_, ret) = &f.sig.output else {
        return Err(Error::new(f.sig.ident.span(), "`forward` returns nothing that could hold recorded values"));
    };
    let kwargs = match args.kwargs.as_ref() {
        Some(k) => k.clone(),
        None => {
            let found: Vec<_> =
                arguments(&f).filter(|(t, _)| type_name(&t.ty).is_some_and(|i| i == "ForwardKwargs")).collect();
            match &found[..] {
                [(_, Some(name))] => (*name).clone(),
                [(t, None)] => return Err(Error::new(t.pat.span(), "give this argument a plain name")),
                [] => {
                    return Err(Error::new(
                        f.sig.paren_token.span.join(),
                        "the request comes from an argument: add `kwargs: &ForwardKwargs`",
                    ));
                }
                [(t, _), ..] => {
                    return Err(Error::new(
                        t.span(),
                        "which `ForwardKwargs` is the request of this model? write `#[capture_outputs(kwargs = …)]`",
                    ));
                }
            }
        }
    };
    if let Some(plain) = type_name(ret).filter(|i| !i.to_string().ends_with("Result")) {
        let message = format!(
            "a request that cannot be met is an error: write `-> Result<{plain}, CaptureError>`, or your own error that is `From<CaptureError>`"
        );
        let e = Error::new(ret.span(), message).to_compile_error();
        let out_name = format_ident!("__capture_output");
        return Ok(quote!(#f #[doc(hidden)] pub fn #out_name() -> &'static #ret { #e }));
    }
    let config = args.config.map_or_else(|| quote!(self.config), |c| quote!(#c));
    let tie = args.tie_last_hidden_states;
    let flags: Vec<_> =
        arguments(&f).filter_map(|(_, n)| n).filter(|n| n.to_string().starts_with("output_")).cloned().collect();
    let flag_names: Vec<_> = flags.iter().map(|n| n.to_string()["output_".len()..].to_owned()).collect();
    let core = crate::root();
    let ret_check = quote_spanned!(ret.span()=> <#ret as #core::capture::Fallible>);
    // The outer method takes plain names; the body keeps the user's patterns and every other attribute.
    let mut outer = f.sig.clone();
    let mut names = Vec::new();
    for (i, a) in outer.inputs.iter_mut().enumerate() {
        if let FnArg::Typed(t) = a {
            t.attrs.clear();
            let name = match &*t.pat {
                Pat::Ident(p) => p.ident.clone(),
                _ => format_ident!("arg{i}"),
            };
            t.pat = parse_quote!(#name);
            names.push(name);
        }
    }
    let (vis, name) = (f.vis.clone(), f.sig.ident.clone());
    let body_name = format_ident!("__{name}_body", span = name.span());
    let plan_name = format_ident!("{name}_plan", span = name.span());
    let captures_name = format_ident!("{name}_captures", span = name.span());
    let mut captures = outer.clone();
    captures.ident = captures_name;
    captures.output =
        parse_quote!(-> ::core::result::Result<#core::capture::Captures<#ret_check::Output>, #ret_check::Error>);
    let (docs, rest): (Vec<_>, Vec<_>) =
        f.attrs.drain(..).partition(|a| ["doc", "must_use", "deprecated", "cfg"].iter().any(|n| a.path().is_ident(n)));
    f.attrs = rest;
    f.sig.ident = body_name.clone();
    f.vis = syn::Visibility::Inherited;
    f.attrs.push(parse_quote!(#[allow(clippy::unnecessary_wraps, clippy::too_many_arguments)]));
    leave_when_complete(&mut f.block, &core);
    f.block.stmts.insert(0, parse_quote!(let _ = (&#kwargs, #(&#flags),*);)); // read by the outer method
    let out_name = format_ident!("__capture_output");
    let out_fn = quote_spanned!(ret.span()=> #[doc(hidden)] pub fn #out_name() -> &'static #ret_check::Output { ::core::unreachable!() });
    let call = quote!(&#core::__private::Options { tie: #tie, arguments: &[#((#flag_names, #core::capture::Flag::from(::core::clone::Clone::clone(&#flags)))),*] }, || self.#body_name(#(#names),*));
    Ok(quote! {
        #(#docs)*
        #vis #outer { #core::__private::run(self, &#config, #kwargs, #call) }
        /// Only what was asked for, the run stopped once it is complete.
        #vis #captures { #core::__private::run_captures::<Self, #ret>(self, &#config, #kwargs, #call) }
        /// What a request would record; runs nothing.
        #vis fn #plan_name(&self, kwargs: &#core::capture::ForwardKwargs) -> ::core::result::Result<#core::capture::CapturePlan, #core::capture::CaptureError> { #core::__private::plan(self, &#config, kwargs) }
        #f
        #out_fn
    })
}

/// Each iteration of a loop first looks whether the run may end; closures, `async` blocks and nested items are left alone.
fn leave_when_complete(block: &mut Block, core: &TokenStream) {
    let leave: Stmt = parse_quote!(if #core::capture::is_complete() { return ::core::result::Result::Err(::core::convert::From::from(#core::capture::CaptureError::Complete)); });
    for s in &mut block.stmts {
        match s {
            Stmt::Expr(e, _) => expr(e, core, &leave),
            Stmt::Local(l) => {
                if let Some(i) = &mut l.init {
                    expr(&mut i.expr, core, &leave);
                    if let Some((_, d)) = &mut i.diverge {
                        expr(d, core, &leave)
                    }
                }
            }
            _ => {}
        }
    }
    fn looped(b: &mut Block, core: &TokenStream, leave: &Stmt) {
        leave_when_complete(b, core);
        b.stmts.insert(0, leave.clone())
    }
    fn expr(e: &mut Expr, core: &TokenStream, leave: &Stmt) {
        match e {
            Expr::ForLoop(l) => looped(&mut l.body, core, leave),
            Expr::While(l) => looped(&mut l.body, core, leave),
            Expr::Loop(l) => looped(&mut l.body, core, leave),
            Expr::Block(b) => leave_when_complete(&mut b.block, core),
            Expr::If(i) => {
                leave_when_complete(&mut i.then_branch, core);
                if let Some((_, e)) = &mut i.else_branch {
                    expr(e, core, leave)
                }
            }
            Expr::Match(m) => m.arms.iter_mut().for_each(|a| expr(&mut a.body, core, leave)),
            Expr::Assign(a) => expr(&mut a.right, core, leave),
            Expr::Paren(p) => expr(&mut p.expr, core, leave),
            Expr::Try(t) => expr(&mut t.expr, core, leave),
            _ => {}
        }
    }
}

pub fn merge(args: TokenStream, tokens: TokenStream) -> Result<TokenStream> {
    let more =
        syn::parse::Parser::parse2(syn::punctuated::Punctuated::<Ident, syn::Token![,]>::parse_terminated, args)?;
    let mut f: ImplItemFn = parse2(tokens)?;
    const NAMES: [&str; 4] =
        ["use_cache", "vision_feature_layer", "vision_feature_select_strategy", "vision_aspect_ratio"];
    for m in &more {
        if !arguments(&f).any(|(_, n)| n == Some(m)) {
            return Err(Error::new(m.span(), format!("`{}` has no argument `{m}`", f.sig.ident)));
        }
    }
    let found: Vec<Ident> = arguments(&f)
        .filter_map(|(_, n)| n)
        .filter(|n| NAMES.iter().any(|k| *n == k) || more.iter().any(|m| m == *n))
        .cloned()
        .collect();
    if found.is_empty() && !arguments(&f).any(|(t, _)| type_name(&t.ty).is_some_and(|i| i == "ForwardKwargs")) {
        return Err(Error::new(
            f.sig.ident.span(),
            "no argument of this method has a default in the config (`use_cache`, …); name one: `#[merge_with_config_defaults(my_argument)]`",
        ));
    }
    let core = crate::root();
    let kwargs = arguments(&f)
        .find(|(t, _)| type_name(&t.ty).is_some_and(|i| i == "ForwardKwargs"))
        .and_then(|(_, n)| n.cloned());
    let mut merges: Vec<Stmt> = found
        .iter()
        .map(|n| -> Stmt {
            let span = n.span();
            let config = quote_spanned!(span=> ::core::clone::Clone::clone(&self.config.#n));
            let value = if n == "use_cache" {
                quote!(#core::__private::merged_use_cache(#n, #config, self))
            } else if n == "vision_feature_select_strategy" {
                quote!(#core::__private::merged_select_strategy(#n, #config)?)
            } else {
                quote!(#core::__private::merged(#n, #config))
            };
            parse_quote!(let #n = #value;)
        })
        .collect();
    if let Some(k) = kwargs {
        merges.push(parse_quote!(let __capture_kwargs = #core::__private::merged_kwargs(#k, &self.config, self);));
        merges.push(parse_quote!(let #k = &*__capture_kwargs;));
    }
    f.block.stmts.splice(0..0, merges);
    Ok(quote!(#f))
}
