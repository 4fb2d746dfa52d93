//! Nothing leaks: after errors and panics, nested or overlapping, on many threads and in pools that steal work.

use crate::model::*;
use patching_core::class::all_slots;
use patching_core::patch::{PatchSet, ReplacementClass};
use patching_core::prelude::*;
use patching_core::weights::PreTrainedModel;
use proptest::prelude::*;
use rayon::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a construction may be done with: nothing, or one of several replacements.
const CHOICES: usize = 4;

fn replacement(choice: usize) -> Option<ReplacementClass> {
    match choice {
        0 => None,
        1 => Some(class::<Scaled<1>>()),
        2 => Some(class::<Scaled<2>>()),
        _ => Some(class::<WrappedLayer>()),
    }
}

fn expected(choice: usize) -> &'static str {
    ["BertLayer", "Scaled<1>", "Scaled<2>", "WrappedLayer"][choice]
}

fn patches(choice: usize) -> PatchSet {
    PatchSet::new(replacement(choice).map(|replacement| ("BertLayer", replacement))).expect("a valid set")
}

/// What the outermost slots of the layers hold.
fn check(model: &BertModel, choice: usize) {
    let slots = all_slots(model);
    let layers: Vec<_> = slots.iter().filter(|slot| slot.path.starts_with("layers.") && slot.path.len() == 8).collect();
    assert!(layers.len() >= 3);
    for layer in model.layers.iter() {
        assert!(
            layer.implementation_name().ends_with(expected(choice)),
            "{} for {choice}",
            layer.implementation_name()
        );
    }
}

/// A construction, and what happens in the middle of it.
#[derive(Clone, Debug)]
enum Act {
    Build(usize),
    /// Constructions inside of one, on the same thread.
    Nest(usize, Vec<Act>),
    /// The same in a pool whose workers steal.
    Parallel(Vec<Act>),
    Panic(usize),
    Fail(usize),
}

fn run(act: &Act) {
    let config = BertConfig::tiny();
    let build = |choice: usize, during: &(dyn Fn() + Sync)| {
        let built = patches(choice).apply(&device(), |init| {
            let first = BertModel::new(&config, init);
            during();
            check(&first, choice);
            BertModel::new(&config, init)
        });
        check(&built.expect("constructs").0, choice);
    };
    match act {
        Act::Build(choice) => build(*choice, &|| ()),
        Act::Nest(choice, acts) => build(*choice, &|| acts.iter().for_each(run)),
        Act::Parallel(acts) => acts.par_iter().for_each(run),
        Act::Panic(choice) => {
            let panicked = catch_unwind(AssertUnwindSafe(|| build(*choice, &|| std::panic::panic_any("asked to"))));
            assert_eq!(panicked.expect_err("panics").downcast_ref(), Some(&"asked to"));
        }
        Act::Fail(choice) => {
            let unfit = patches(*choice).with([("Attention$", class::<NoAttention>())], false).expect("a valid set");
            let failed = unfit.apply(&device(), |init| BertModel::new(&config, init));
            // layers that are replaced by something without attention do not meet the pattern
            assert_eq!(failed.is_err(), matches!(choice, 0 | 3));
        }
    }
    check(&plain(&config), 0);
}

fn acts() -> impl Strategy<Value = Act> {
    let leaf = prop_oneof![
        4 => (0..CHOICES).prop_map(Act::Build),
        1 => (0..CHOICES).prop_map(Act::Panic),
        1 => (0..CHOICES).prop_map(Act::Fail),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let several = prop::collection::vec(inner, 1..5);
        prop_oneof![
            ((0..CHOICES), several.clone()).prop_map(|(choice, acts)| Act::Nest(choice, acts)),
            several.prop_map(Act::Parallel),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_construction_gets_its_own_patches(acts in prop::collection::vec(acts(), 1..6)) {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| ()));
        let done = catch_unwind(AssertUnwindSafe(|| run(&Act::Parallel(acts.clone()))));
        std::panic::set_hook(hook);
        prop_assert!(done.is_ok(), "{:?}", done.err().and_then(|panic| panic.downcast_ref::<String>().cloned()));
    }
}

#[test]
fn registering_during_a_construction_does_not_reach_it() {
    let _registry = Registry::empty();
    let config = BertConfig::tiny();
    register_patch_mapping([("BertLayer", class::<Scaled<1>>())]).expect("registers");
    let model = apply_patches(&device(), |init| {
        register_patch_mapping_with([("BertLayer", class::<Scaled<2>>())], true).expect("overwrites");
        BertModel::new(&config, init)
    });
    check(&model.expect("constructs"), 1);
    check(&BertModel::from_config(&config, &device()).expect("constructs"), 2);
}

#[test]
fn constructions_on_many_threads_while_others_register() {
    let _registry = Registry::empty();
    let config = BertConfig::tiny();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..100 {
                    register_patch_mapping_with([("BertLayer", class::<Scaled<1>>())], true).expect("registers");
                    clear_patch_mapping();
                }
            });
        }
        for choice in 0..CHOICES {
            let config = &config;
            scope.spawn(move || {
                for _ in 0..50 {
                    let built = patches(choice).apply(&device(), |init| BertModel::new(config, init));
                    check(&built.expect("constructs").0, choice);
                    check(&plain(config), 0);
                    // all layers of one construction are of one snapshot
                    let model = BertModel::from_config(config, &device()).expect("constructs");
                    let first = model.layers[0].implementation_name();
                    assert!(model.layers.iter().all(|layer| layer.implementation_name() == first));
                }
            });
        }
    });
}
