//! The registry: all or nothing.

use crate::model::{BertSelfAttention, NoAttention, Registry, Wrapped};
use patching_core::patch::{PatchError, PatchSet, original};
use patching_core::prelude::*;

fn keys() -> Vec<String> {
    get_patch_mapping().keys().map(str::to_owned).collect()
}

fn message(result: Result<(), PatchError>) -> String {
    result.expect_err("refused").to_string()
}

#[test]
fn registering_getting_and_unregistering() {
    let _registry = Registry::empty();
    register_patch_mapping([("BertSelfAttention", class::<NoAttention>()), (".*Self.*", class::<Wrapped>())])
        .expect("registers");
    let mapping = get_patch_mapping();
    assert_eq!(mapping.to_string(), "{BertSelfAttention: NoAttention, .*Self.*: Wrapped}");
    assert_eq!(mapping.get("BertSelfAttention"), Some(&class::<NoAttention>()));

    unregister_patch_mapping(["BertSelfAttention"]).expect("unregisters");
    assert_eq!(keys(), [".*Self.*"]);
    // what was got is a copy
    assert_eq!(mapping.len(), 2);
    register_patch_mapping(mapping.without(["BertSelfAttention"]).expect("is there")).expect_err("is there already");
    clear_patch_mapping();
    assert!(get_patch_mapping().is_empty());
    register_patch_mapping(mapping).expect("a mapping registers as it was got");
    assert_eq!(keys().len(), 2);
}

#[test]
fn a_bad_entry_leaves_everything_as_it_was() {
    let _registry = Registry::empty();
    let no = || class::<NoAttention>();
    register_patch_mapping([("Present", no())]).expect("registers");
    let bad = [
        (vec![("Fresh", no()), ("Present", class::<Wrapped>())], "`Present` is already registered, for `NoAttention`"),
        (vec![("Fresh", no()), ("[", no())], "the key `[` is neither the name of a class nor a valid expression"),
        (vec![("Fresh", no()), ("", no())], "a patch needs the name of a class or an expression, but its key is \"\""),
        (vec![("Fresh", no()), ("Fresh", class::<Wrapped>())], "the mapping has the key `Fresh` twice"),
        (
            vec![("Fresh", no()), ("BertAttention", no())],
            "`NoAttention` cannot stand in for `BertAttention`: `NoAttention` stands in for `BertSelfAttention`, `BertCrossAttention` only",
        ),
    ];
    for (mapping, expected) in bad {
        let found = message(register_patch_mapping(mapping.clone()));
        assert!(found.contains(expected), "{found}");
        assert_eq!(keys(), ["Present"]);
        // nor does it change anything with `overwrite`
        let overwritten = register_patch_mapping_with(mapping, true);
        assert_eq!(overwritten.is_ok(), expected.contains("already"), "{expected}");
        clear_patch_mapping();
        register_patch_mapping([("Present", no())]).expect("registers");
    }
}

#[test]
fn overwriting_keeps_the_place() {
    let _registry = Registry::empty();
    register_patch_mapping([("Attention$", class::<NoAttention>()), ("^Bert", class::<Wrapped>())]).expect("registers");
    register_patch_mapping_with([("Attention$", class::<Wrapped>()), ("New", original())], true).expect("overwrites");
    assert_eq!(get_patch_mapping().to_string(), "{Attention$: Wrapped, ^Bert: Wrapped, New: the original}");
}

#[test]
fn unknown_keys_are_named_with_near_matches_and_nothing_is_unregistered() {
    let _registry = Registry::empty();
    register_patch_mapping([("BertSelfAttention", class::<NoAttention>())]).expect("registers");
    let found = message(unregister_patch_mapping(["BertSelfAttention", "BertSelfAttentoin", "Else"]));
    assert_eq!(found, "not registered: `BertSelfAttentoin` (did you mean `BertSelfAttention`?), `Else`");
    assert_eq!(keys(), ["BertSelfAttention"]);
}

#[test]
fn nothing_is_a_mapping_too() {
    let _registry = Registry::empty();
    register_patch_mapping(PatchSet::default()).expect("nothing registers");
    unregister_patch_mapping(Vec::<String>::new()).expect("nothing unregisters");
    assert!(get_patch_mapping().is_empty());
}

#[test]
fn an_iterator_may_use_the_registry() {
    let _registry = Registry::empty();
    let entries = (0..2).map(|n| (format!("Class{}", get_patch_mapping().len() + n), class::<NoAttention>()));
    register_patch_mapping(entries).expect("no deadlock");
    assert_eq!(keys(), ["Class0", "Class1"]);
}

#[test]
fn many_threads_register_at_once() {
    let _registry = Registry::empty();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                for n in 0..50 {
                    let key = format!("Class{thread}x{n}");
                    register_patch_mapping([(key.clone(), class::<NoAttention>())]).expect("registers");
                    assert!(get_patch_mapping().get(&key).is_some());
                    if n % 2 == 0 {
                        unregister_patch_mapping([&key]).expect("unregisters");
                    }
                }
            });
        }
    });
    assert_eq!(keys().len(), 8 * 25);
}

#[test]
fn classes_of_the_program_are_listed() {
    let names: Vec<_> = patching_core::class::known_classes().map(|class| class.name).collect();
    for name in ["BertSelfAttention", "BertCrossAttention", "BertAttention", "BertLayer", "MegatronBertLayer"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert_eq!(<BertSelfAttention as ModuleClass>::NAME, "BertSelfAttention");
}
