//! That all mistakes of an item are reported at once, and nothing panics.

use super::*;
use crate::{
    can_record_outputs, capture_outputs, config_defaults, merge_with_config_defaults, model_output, module_class,
    replaces,
};

#[test]
fn all_mistakes_of_a_class_are_reported() {
    let item = quote! {
        impl Attention {
            fn new(_a: &Init, _b: &Init) {}
            async fn forward(&mut self, x: impl Into<usize>) -> &Tensor<2> { x }
        }
    };
    let found = messages(module_class::entry(quote!(name), item, &core()));
    assert_eq!(found.len(), 7, "{found:#?}");
}

#[test]
fn all_mistakes_of_a_replacement_are_reported() {
    let item = quote! {
        impl Attention {
            fn new(&self) -> Self { Self }
            async fn forward(&mut self) {}
        }
    };
    let found = messages(replaces::entry(quote!(A, A), item, &core()));
    assert_eq!(found.len(), 4, "{found:#?}");
    let found = messages(replaces::entry(quote!(), quote!(impl Replace for Attention {}), &core()));
    assert_eq!(found.len(), 2, "{found:#?}");
}

#[test]
fn all_mistakes_of_a_forward_are_reported() {
    let item = quote! {
        async fn forward(&mut self, x: Tensor<2>) -> (Output, usize) { x }
    };
    let found = messages(capture_outputs::entry(quote!(tie = 1, kwargs = nothing), item, &core()));
    // a wrong argument of the macro hides its other arguments
    assert_eq!(found.len(), 5, "{found:#?}");
}

#[test]
fn all_mistakes_of_a_declaration_are_reported() {
    let item = quote! {
        #[can_record_outputs(a = 1, b = [2, OutputRecorder(C, indx = 1)], b = C)]
        #[can_record_outputs(c)]
        struct Model { layers: usize }
    };
    let found = messages(can_record_outputs::entry(item, &core()));
    assert_eq!(found.len(), 6, "{found:#?}");
}

#[test]
fn an_empty_declaration_is_valid() {
    for attribute in [quote!(), quote!(#[can_record_outputs]), quote!(#[can_record_outputs()])] {
        let item = quote!(#attribute struct Model { mine: OutputRecorders });
        let tokens = can_record_outputs::entry(item, &core()).expect("valid").to_string();
        assert!(tokens.contains("& self . mine"), "{tokens}");
    }
}

#[test]
fn a_result_may_hide_behind_any_alias() {
    for output in [
        quote!(Result<Output, E>),
        quote!(Answer),
        quote!(crate::Fallibly<Output>),
        quote!(io::Result<Output>),
        quote!(<A as B>::C),
    ] {
        let item = quote!(fn forward(&self, kwargs: &ForwardKwargs) -> #output { todo!() });
        assert!(capture_outputs::entry(quote!(), item, &core()).is_ok(), "{output}");
    }
    for output in [
        quote!(Option<Output>),
        quote!((Output, E)),
        quote!(&Output),
        quote!([Output; 2]),
        quote!(Tensor<2>),
        quote!(Self),
        quote!(!),
    ] {
        let item = quote!(fn forward(&self, kwargs: &ForwardKwargs) -> #output { todo!() });
        assert!(capture_outputs::entry(quote!(), item, &core()).is_err(), "{output}");
    }
}

#[test]
fn items_that_are_something_else_are_refused() {
    for item in [
        quote!(),
        quote!(
            struct S;
        ),
        quote!(
            fn f() {}
        ),
        quote!(impl T for S {}),
        quote!(
            mod m {}
        ),
        quote!(
            enum E {}
        ),
        quote!(1 + 1),
    ] {
        assert!(module_class::entry(quote!(), item.clone(), &core()).is_err(), "{item}");
        assert!(capture_outputs::entry(quote!(), item.clone(), &core()).is_err(), "{item}");
        assert!(merge_with_config_defaults::entry(quote!(), item.clone(), &core()).is_err(), "{item}");
    }
    for item in [
        quote!(),
        quote!(
            enum E {
                A,
            }
        ),
        quote!(
            struct S(usize);
        ),
        quote!(
            struct S;
        ),
        quote!(union U { a: u8 }),
    ] {
        assert!(can_record_outputs::entry(item.clone(), &core()).is_err(), "{item}");
        assert!(model_output::entry(item.clone(), &core()).is_err(), "{item}");
        assert!(config_defaults::entry(item.clone(), &core()).is_err(), "{item}");
    }
}

#[test]
fn odd_arguments_never_panic() {
    let arguments = [
        quote!(),
        quote!(=),
        quote!(a = ),
        quote!(config),
        quote!(config = 1 +),
        quote!("text"),
        quote!(kwargs = 3),
        quote!(a b),
        quote!(,,),
    ];
    for args in arguments {
        let item = quote!(
            fn forward(&self, kwargs: &ForwardKwargs) -> Result<O, E> {
                todo!()
            }
        );
        let _ = capture_outputs::entry(args.clone(), item.clone(), &core());
        let _ = merge_with_config_defaults::entry(args.clone(), item, &core());
        let _ = can_record_outputs::entry(
            quote!(
                #[can_record_outputs(#args)]
                struct S {
                    r: OutputRecorders,
                }
            ),
            &core(),
        );
        let _ = can_record_outputs::entry(
            quote!(
                #[can_record_outputs(k = OutputRecorder(#args))]
                struct S {
                    r: OutputRecorders,
                }
            ),
            &core(),
        );
    }
}
