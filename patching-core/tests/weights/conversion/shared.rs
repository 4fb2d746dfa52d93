//! Rules that have the same keys in mind.

use patching_core::weights::{Concatenate, LoadOptions, WeightConverter, WeightRenaming, WeightTransform};

use super::bag::{BagConfig, counting, folder, load, mapping, saved};
use crate::support::tensors;

fn fuse(target: &str) -> WeightTransform {
    WeightConverter::new(["left", "right"], target).with(Concatenate::dim(0)).into()
}

/// Loads parts of `both` under `rules`; the rules that were not used.
fn unused(rules: Vec<WeightTransform>) -> Vec<String> {
    let config = BagConfig::new(&[("a.both", &[3]), ("norm", &[1])]);
    let all = [counting("a.left", &[1], 1), counting("a.right", &[2], 2), counting("old", &[1], 4)];
    let folder = folder(&all);
    let mapping = mapping(rules);
    let (bag, report) = load(&config, folder.path(), &LoadOptions::new().conversions(mapping)).expect("loads");
    assert_eq!(bag.floats("a.both"), [1.0, 2.0, 3.0]);
    assert_eq!(saved(&bag), tensors(folder.path()));
    report.unused_rules
}

#[test]
fn a_rule_that_comes_after_its_twin_is_unused_and_no_error() {
    let rename = || WeightTransform::from(WeightRenaming::new("old", "norm"));
    assert!(unused(vec![rename(), fuse("both")]).is_empty());
    // the first that makes something, so this one is not asked
    let other = WeightConverter::new(["a.left", "a.right"], "a.else").with(Concatenate::dim(0)).into();
    assert_eq!(unused(vec![rename(), fuse("both"), other]).len(), 1);
}

#[test]
fn a_rule_without_a_target_does_not_stand_before_one_with() {
    let rename = WeightTransform::from(WeightRenaming::new("old", "norm"));
    let none: WeightTransform =
        WeightConverter::new(["a.left", "a.right"], "a.nowhere").with(Concatenate::dim(0)).into();
    assert_eq!(unused(vec![none, fuse("both"), rename]).len(), 1);
}

#[test]
fn a_file_with_the_prefix_on_every_key_is_saved_with_it() {
    let config = BagConfig::new(&[("a.both", &[3]), ("norm", &[1])]);
    let stored =
        || vec![counting("model.a.left", &[1], 1), counting("model.a.right", &[2], 2), counting("model.norm", &[1], 4)];
    let rules = || LoadOptions::new().conversions(mapping(vec![fuse("both")]));
    let prefixed = folder(&stored());
    let (bag, report) = load(&config, prefixed.path(), &rules()).expect("loads");
    assert_eq!(report.renamed.len(), 1, "{report}");
    assert_eq!(saved(&bag), tensors(prefixed.path()));

    // one with more than that is the file of a head, and this is not the head
    let mut all = stored();
    all.push(counting("score", &[2], 9));
    let of_head = folder(&all);
    let (bag, _) = load(&config, of_head.path(), &rules()).expect("loads");
    let keys: Vec<_> = saved(&bag).into_keys().collect();
    assert_eq!(keys, ["a.left", "a.right", "norm"]);
}
