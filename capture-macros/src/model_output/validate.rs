//! The rules of `#[derive(ModelOutput)]`.

use super::model::{Output, OutputField};
use crate::shared::{Errors, last_ident, last_segment, readable};
use syn::{Data, DeriveInput, Fields, GenericArgument, PathArguments, Type};

pub(super) fn check<'a>(input: &'a DeriveInput, errors: &mut Errors) -> Output<'a> {
    let mut output = Output { ident: &input.ident, vis: &input.vis, fields: Vec::new() };
    for param in &input.generics.params {
        errors.on(param, "a model output cannot be generic: recorders know its fields by name and type");
    }
    let Data::Struct(data) = &input.data else {
        errors.at(input.ident.span(), "a model output is a struct with named fields");
        return output;
    };
    match &data.fields {
        Fields::Named(fields) => {
            for field in &fields.named {
                if let Some(captured) = optional_captured(&field.ty) {
                    errors.on(
                        &field.ty,
                        format!("a captured sequence knows whether it was asked for: write `{}`", readable(captured)),
                    );
                }
                output.fields.extend(OutputField::new(field));
            }
        }
        _ => errors.at(input.ident.span(), "a model output is a struct with named fields: a key names a field"),
    }
    output
}

/// The `Captured` in an `Option<Captured<…>>`.
fn optional_captured(ty: &Type) -> Option<&Type> {
    let segment = last_segment(ty).filter(|segment| segment.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(inner) if last_ident(inner).is_some_and(|ident| ident == "Captured") => Some(inner),
        _ => None,
    })
}
