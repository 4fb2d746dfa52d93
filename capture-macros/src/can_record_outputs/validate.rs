//! The rules of `#[derive(CanRecordOutputs)]`.

use super::model::{Entry, Model};
use crate::shared::{Errors, last_ident};
use syn::{Data, DataStruct, DeriveInput, Fields, GenericParam, Ident};

const RECORDERS: &str = "OutputRecorders";

pub(super) fn check<'a>(input: &'a DeriveInput, entries: Vec<Entry>, errors: &mut Errors) -> Model<'a> {
    for param in &input.generics.params {
        if let GenericParam::Lifetime(lifetime) = param {
            errors.on(lifetime, "a base model owns its modules: it has no lifetimes");
        }
    }
    let recorders = recorders(input, errors);
    let mut unique: Vec<Entry> = Vec::new();
    for entry in entries {
        if unique.iter().any(|earlier| earlier.key == entry.key) {
            errors.at(entry.key.span(), format!("`{0}` is declared twice: write one list, `{0} = [A, B]`", entry.key));
            continue;
        }
        check_initial(&entry, errors);
        unique.push(entry);
    }
    Model { ident: &input.ident, generics: &input.generics, recorders, modules: modules(input), entries: unique }
}

/// The named fields that `#[module(skip)]` does not hide.
fn modules(input: &DeriveInput) -> Vec<Ident> {
    let Data::Struct(DataStruct { fields: Fields::Named(fields), .. }) = &input.data else { return Vec::new() };
    let is_skipped = |field: &&syn::Field| field.attrs.iter().any(|attribute| attribute.path().is_ident("module"));
    fields.named.iter().filter(|field| !is_skipped(field)).filter_map(|field| field.ident.clone()).collect()
}

/// The field that marks the struct as a base model.
fn recorders(input: &DeriveInput, errors: &mut Errors) -> Option<Ident> {
    let Data::Struct(data) = &input.data else {
        errors.at(input.ident.span(), "a base model is a struct with named fields");
        return None;
    };
    let Fields::Named(fields) = &data.fields else {
        errors.at(
            input.ident.span(),
            format!("a base model is a struct with named fields, one of them `recorders: {RECORDERS}`"),
        );
        return None;
    };
    let mut found = fields.named.iter().filter(|field| last_ident(&field.ty).is_some_and(|ident| ident == RECORDERS));
    let Some(first) = found.next() else {
        errors.at(input.ident.span(), format!("a base model keeps its own recorders: add a field `recorders: {RECORDERS}`, made with `{RECORDERS}::default()`"));
        return None;
    };
    for more in found {
        errors.on(more, format!("a base model has one field of type `{RECORDERS}`: remove this one"));
    }
    first.ident.clone()
}

fn check_initial(entry: &Entry, errors: &mut Errors) {
    if entry.key == "hidden_states" {
        return;
    }
    for initial in entry.targets.iter().filter_map(|target| target.initial.as_ref()).filter(|initial| initial.value) {
        errors.on(
            initial,
            format!("only `hidden_states` begin with an initial value, `{}` do not: leave this out", entry.key),
        );
    }
}
