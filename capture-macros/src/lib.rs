mod capture;
mod class;
mod derive;
use proc_macro::TokenStream;
use quote::quote;

/// The path of the runtime crate.
fn root() -> proc_macro2::TokenStream {
    quote!(::patching_core)
}

/// On error, the user's own tokens stay, so that one mistake does not hide the whole `impl` from the compiler
/// and from rust-analyzer.
fn with_original(item: proc_macro2::TokenStream, result: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    match result {
        Ok(t) => t.into(),
        Err(e) => {
            let e = e.to_compile_error();
            quote!(#item #e).into()
        }
    }
}
#[proc_macro_attribute]
pub fn module_class(args: TokenStream, item: TokenStream) -> TokenStream {
    let item = proc_macro2::TokenStream::from(item);
    with_original(item.clone(), class::module_class(args.into(), item))
}
#[proc_macro_attribute]
pub fn capture_outputs(args: TokenStream, item: TokenStream) -> TokenStream {
    let item = proc_macro2::TokenStream::from(item);
    with_original(item.clone(), capture::capture_outputs(args.into(), item))
}
#[proc_macro_attribute]
pub fn merge_with_config_defaults(args: TokenStream, item: TokenStream) -> TokenStream {
    let item = proc_macro2::TokenStream::from(item);
    with_original(item.clone(), capture::merge(args.into(), item))
}
#[proc_macro_derive(CanRecordOutputs, attributes(can_record_outputs))]
pub fn can_record_outputs(item: TokenStream) -> TokenStream {
    derive::can_record_outputs(item.into()).unwrap_or_else(|e| e.to_compile_error()).into()
}
#[proc_macro_derive(ModelOutput)]
pub fn model_output(item: TokenStream) -> TokenStream {
    derive::model_output(item.into()).unwrap_or_else(|e| e.to_compile_error()).into()
}

#[proc_macro_derive(ConfigDefaults)]
pub fn config_defaults(item: TokenStream) -> TokenStream {
    derive::config_defaults(item.into()).unwrap_or_else(|e| e.to_compile_error()).into()
}
