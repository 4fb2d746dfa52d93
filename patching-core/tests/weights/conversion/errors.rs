//! Wrong checkpoints and wrong rules: what is said, all of it at once, and before anything is read.

use burn::tensor::Device;
use patching_core::weights::{
    Chunk, Concatenate, ConversionError, ConversionMapping, ConversionProblem, LoadError, MergeModulelist,
    PermuteForRope, PreTrainedModel, Split, SplitModulelist, Transpose, WeightConverter, WeightRenaming,
    WeightTransform,
};
use safetensors::Dtype;

use super::bag::{Bag, BagConfig, Stored, converting, counting, folder, load};

/// The problems of a load that must fail.
fn problems<R: Into<WeightTransform>>(
    config: &BagConfig,
    stored: &[Stored],
    rules: impl IntoIterator<Item = R>,
) -> Vec<String> {
    let folder = folder(stored);
    match load(config, folder.path(), &converting(rules)) {
        Err(LoadError::Weights(report)) => report.problems.iter().map(ToString::to_string).collect(),
        Err(other) => panic!("{other}"),
        Ok((_, report)) => panic!("it loads: {report}"),
    }
}

fn qkv() -> WeightConverter {
    WeightConverter::new(["q_proj", "k_proj", "v_proj"], "qkv_proj").with(Concatenate::dim(0))
}

fn stacked() -> WeightConverter {
    WeightConverter::new("experts.*.w", "experts.all").with(MergeModulelist::dim(0))
}

#[test]
fn a_source_that_is_not_there() {
    let config = BagConfig::new(&[("a.qkv_proj.weight", &[4])]);
    let stored = [
        counting("a.q_proj.weight", &[2], 0),
        counting("a.k_proj.weight", &[1], 0),
        counting("a.v_prj.weight", &[1], 0),
    ];
    assert_eq!(
        problems(&config, &stored, [qkv()]),
        ["`a.qkv_proj.weight` has 2 of its tensors, but not `a.v_proj.weight`; the checkpoint has `a.v_prj.weight`"]
    );
}

#[test]
fn an_expert_that_is_not_there_and_one_too_many() {
    let config = BagConfig::new(&[("experts.all", &[4, 1])]);
    let stored: Vec<_> = [0, 1, 3, 10].map(|index| counting(&format!("experts.{index}.w"), &[1], 0)).into();
    assert_eq!(
        problems(&config, &stored, [stacked()]),
        [
            "`experts.all` has 4 of its tensors, but not `experts.2.w`",
            "`experts.all` has room for 4 of a list, and none for `experts.10.w`"
        ]
    );
    let few: Vec<_> = stored[..2].to_vec();
    let found = problems(&config, &few, [stacked()]);
    assert_eq!(found, ["`experts.all` has 2 of its tensors, but not `experts.2.w`, `experts.3.w`"]);
}

#[test]
fn many_missing_experts_are_counted() {
    let config = BagConfig::new(&[("experts.all", &[100, 1])]);
    let found = problems(&config, &[counting("experts.7.w", &[1], 0)], [stacked()]);
    assert!(found[0].ends_with("`experts.6.w`, `experts.8.w` and 91 more"), "{found:?}");
}

#[test]
fn huge_and_odd_indices() {
    let config = BagConfig::new(&[("experts.all", &[1, 1])]);
    let key = |index: &str| counting(&format!("experts.{index}.w"), &[1], 0);
    let found = problems(
        &config,
        &[key("18446744073709551615"), key("18446744073709551616"), key("00"), key("-1")],
        [stacked()],
    );
    assert_eq!(
        found,
        [
            "`-1` in `experts.-1.w` is not a number, expected the index in a module list",
            "`00` in `experts.00.w` is not a number, expected the index in a module list",
            "`18446744073709551616` in `experts.18446744073709551616.w` is not a number, expected the index in a module list",
            "`experts.all` has 1 of its tensors, but not `experts.0.w`",
            "`experts.all` has room for 1 of a list, and none for `experts.18446744073709551615.w`"
        ]
    );
}

#[test]
fn two_ways_to_one_parameter() {
    let config = BagConfig::new(&[("qkv_proj", &[4]), ("b", &[1])]);
    let stored = [
        counting("qkv_proj", &[4], 0),
        counting("q_proj", &[2], 0),
        counting("k_proj", &[1], 0),
        counting("v_proj", &[1], 0),
        counting("a", &[1], 0),
        counting("b", &[1], 0),
    ];
    let rules = [WeightTransform::from(qkv()), WeightRenaming::new("a", "b").into()];
    assert_eq!(
        problems(&config, &stored, rules),
        [
            "`b` is made twice: from `a` and from `b`",
            "`qkv_proj` is made twice: from `qkv_proj` and from `q_proj`, `k_proj`, `v_proj`"
        ]
    );
    // two tensors for one place of a group
    let rules = [WeightTransform::from(qkv()), WeightRenaming::new("a", "q_proj").into()];
    let found = problems(&config, &stored[1..], rules);
    assert_eq!(found, ["`qkv_proj` is made twice: from `a` and from `q_proj`"]);
}

#[test]
fn a_rule_comes_before_the_parameter_of_the_same_name_and_that_is_missing_then() {
    let config = BagConfig::new(&[("x", &[1]), ("y", &[1])]);
    let only = folder(&[counting("x", &[1], 7)]);
    let cases: [fn() -> WeightTransform; 2] =
        [|| WeightRenaming::new("x", "y").into(), || WeightConverter::new("x", "y").with(Chunk::dim(0)).into()];
    for rule in cases {
        let error = load(&config, only.path(), &converting([rule()])).expect_err("nothing is left for `x`");
        let expected = "missing (1):\n  x: [1], though the checkpoint has it, since a rule made `y` of it";
        assert!(error.to_string().contains(expected), "{error}");
        // where that is allowed, it is told
        let options = converting([rule()]).allow_missing(true);
        let (model, report) = load(&config, only.path(), &options).expect("loads");
        assert_eq!(model.floats("y"), [7.0]);
        assert_eq!(
            (report.missing[0].key.as_str(), report.missing[0].taken_for.as_slice()),
            ("x", &["y".to_owned()][..])
        );
        // with both in the checkpoint there are two for `y`
        let both = [counting("x", &[1], 0), counting("y", &[1], 0)];
        let found = problems(&config, &both, [rule()]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("`y` is made twice: from `"), "{found:?}");
    }
    // a rule that would make what the model has no place for leaves its parameter alone
    let config = BagConfig::new(&[("x", &[1])]);
    let (model, _) = load(&config, only.path(), &converting([cases[0]()])).expect("loads");
    assert_eq!(model.floats("x"), [7.0]);
}

#[test]
fn parts_are_compared_in_every_tensor_of_a_list() {
    let config = BagConfig::new(&[("e.all", &[2, 4])]);
    let stored = [("e.0.a", 2), ("e.0.b", 2), ("e.1.a", 1), ("e.1.b", 3)].map(|(key, size)| counting(key, &[size], 0));
    let rule = |joined| WeightConverter::new(["e.*.a", "e.*.b"], "e.all").with(joined).with(MergeModulelist::dim(0));
    for (joined, expected) in
        [(Concatenate::dim(0).equal(), "equal ones"), (Concatenate::dim(0).sizes([2, 2]), "[2, 2]")]
    {
        let found = problems(&config, &stored, [rule(joined)]);
        let expected = format!("the parts have the sizes [1, 3] in dimension 0, at 1 in the list, expected {expected}");
        assert!(found.len() == 1 && found[0].ends_with(&expected), "{found:?}");
    }
}

#[test]
fn a_rule_that_nothing_matches() {
    let config = BagConfig::new(&[("layers.0.qkv.weight", &[1])]);
    let stored = [counting("layers.0.qkv.weight", &[1], 0), counting("layers.0.q_proj.weight", &[1], 0)];
    let rules = [
        WeightTransform::from(WeightConverter::new(["q_prj", "k"], "qk").with(Concatenate::dim(0))),
        WeightRenaming::new("layer.*", "layers.*").into(),
        WeightRenaming::new("nothing", "like_it").into(),
        WeightRenaming::new("old", "new").optional().into(),
        WeightRenaming::regex("^a.+b", "c").expect("an expression").into(),
    ];
    assert_eq!(
        problems(&config, &stored, rules),
        [
            "the rule `q_prj`, `k` -> `qk` matches nothing in the checkpoint, which has `q_proj`",
            "the rule `nothing` -> `like_it` matches nothing in the checkpoint",
            "the rule /^a.+b/ -> `c` matches nothing in the checkpoint"
        ]
    );
}

#[test]
fn what_does_not_fit_is_named_with_keys_and_shapes() {
    let config =
        BagConfig::new(&[("a.qkv_proj", &[4, 2]), ("b.qkv_proj", &[5, 2]), ("l", &[2]), ("r", &[2]), ("odd", &[6])]);
    let stored = [
        counting("a.q_proj", &[2, 2], 0),
        counting("a.k_proj", &[1, 3], 0),
        counting("a.v_proj", &[1, 2], 0),
        counting("b.q_proj", &[2, 2], 0),
        counting("b.k_proj", &[1, 2], 0),
        counting("b.v_proj", &[1, 2], 0),
        counting("lr", &[3], 0),
        counting("odd", &[6], 0),
    ];
    let rules = [
        qkv(),
        WeightConverter::new("lr", ["l", "r"]).with(Chunk::dim(0)),
        WeightConverter::new("odd", "odd").with(PermuteForRope::head_dim(4)),
    ];
    let folder = folder(&stored);
    let Err(LoadError::Weights(report)) = load(&config, folder.path(), &converting(rules)) else { panic!("it loads") };
    assert_eq!(
        report.to_string(),
        "loaded 0 parameters (0 bytes)\n\
         cannot be converted (3):\n  \
         `a.qkv_proj` from `a.q_proj` [2, 2], `a.k_proj` [1, 3], `a.v_proj` [1, 2]: Concatenate(dim=0): the shapes [2, 2] \
         and [1, 3] differ in another dimension than 0\n  \
         `l`, `r` from `lr` [3]: Chunk(dim=0): 3, dimension 0 of [3], is not 2 equal parts\n  \
         `odd` from `odd` [6]: PermuteForRope(head_dim=4): 6 rows are no heads of 4 rows\n\
         mismatched (1):\n  \
         b.qkv_proj: [4, 2] made of `b.q_proj` [2, 2], `b.k_proj` [1, 2], `b.v_proj` [1, 2], [5, 2] in the model"
    );
}

#[test]
fn further_operations_that_do_not_fit() {
    let one = |rule: WeightConverter, target: &[usize], source: &[usize]| {
        problems(&BagConfig::new(&[("t", target)]), &[counting("s", source, 0)], [rule])
    };
    let rule = || WeightConverter::new("s", "t");
    assert_eq!(
        one(rule().with(Transpose::dims(0, 2)), &[2, 2], &[2, 2]),
        ["`t` from `s` [2, 2]: Transpose(dim0=0, dim1=2): there is no dimension 2 in [2, 2]"]
    );
    assert_eq!(
        one(rule().with(Transpose::dims(0, 1).if_needed()), &[2, 2], &[2, 2]),
        [
            "`t` from `s` [2, 2]: dimensions 0 and 1 of [2, 2] would fit exchanged and as they are, so it cannot be told \
          whether to transpose; leave out `if_needed`, or the operation"
        ]
    );
    assert_eq!(
        one(rule().with(PermuteForRope::new()), &[2, 2], &[2, 2]),
        ["`t` from `s` [2, 2]: PermuteForRope: the config has neither `head_dim` nor `hidden_size` and \
          `num_attention_heads`; state it with `PermuteForRope::head_dim`"]
    );
    let config = BagConfig::new(&[("l", &[2]), ("r", &[3])]);
    let rule = WeightConverter::new("s", ["l", "r"]).with(Split::dim(0));
    assert_eq!(
        problems(&config, &[counting("s", &[4], 0)], [rule]),
        ["`l`, `r` from `s` [4]: Split(dim=0): dimension 0 of [4] is not the sum of [2, 3]"]
    );
    let config = BagConfig::new(&[("x.0", &[2]), ("x.1", &[2])]);
    let rule = || WeightConverter::new("s", "x.*").with(SplitModulelist::dim(0));
    assert_eq!(
        problems(&config, &[counting("s", &[3, 2], 0)], [rule()]),
        [
            "`x.0`, `x.1` from `s` [3, 2]: SplitModulelist(dim=0): dimension 0 of [3, 2] has 3 elements, but the model has \
          2 in its list"
        ]
    );
    // no elements, but a size that must not be believed
    let huge: Stored = ("s".into(), Dtype::F32, vec![1 << 60, 0], vec![]);
    assert!(problems(&config, &[huge], [rule()])[0].contains("has 1152921504606846976 elements"));
    let config = BagConfig::new(&[("t", &[4])]);
    let rule = WeightConverter::new(["a", "b"], "t").with(Concatenate::dim(0).sizes([3, 1]));
    assert_eq!(
        problems(&config, &[counting("a", &[2], 0), counting("b", &[2], 0)], [rule]),
        [
            "`t` from `a` [2], `b` [2]: Concatenate(dim=0, sizes=[3, 1]): the parts have the sizes [2, 2] in dimension 0, \
          expected [3, 1]"
        ]
    );
}

#[test]
fn types_that_differ() {
    let config = BagConfig::new(&[("t", &[4])]);
    let stored = [counting("a", &[2], 0), ("b".into(), Dtype::F16, vec![2], vec![0; 4])];
    let rule = WeightConverter::new(["a", "b"], "t").with(Concatenate::dim(0));
    assert_eq!(problems(&config, &stored, [rule]), ["`t` from tensors of different types: `b` of F16, `a` of F32"]);
}

#[test]
fn a_rule_half_of_which_the_model_does_not_have() {
    let config = BagConfig::new(&[("m.left", &[1]), ("m.rights", &[1])]);
    let rule = WeightConverter::new("both", ["left", "right"]).with(Chunk::dim(0));
    let folder = folder(&[counting("m.both", &[2], 0)]);
    let Err(LoadError::Weights(report)) = load(&config, folder.path(), &converting([rule])) else { panic!("it loads") };
    let expected = "the rule `both` -> `left`, `right` makes `m.right`, which the model does not have";
    assert!(report.problems[0].to_string().starts_with(expected), "{report}");
    assert!(
        matches!(&report.problems[0], ConversionProblem::UnknownTarget { near, .. } if near.contains(&"m.rights".into()))
    );
}

#[test]
fn problems_are_errors_whatever_is_allowed() {
    let config = BagConfig::new(&[("qkv_proj", &[4])]);
    let folder = folder(&[counting("q_proj", &[2], 0)]);
    let options = converting([qkv()]).allow_missing(true).ignore_mismatched(true);
    assert!(matches!(load(&config, folder.path(), &options), Err(LoadError::Weights(_))));
    // a shape that does not fit is a mismatch like others
    let stored = [counting("q_proj", &[2], 0), counting("k_proj", &[2], 0), counting("v_proj", &[2], 0)];
    super::bag::write(folder.path(), &stored);
    let (model, report) = load(&config, folder.path(), &options).expect("it is allowed");
    assert_eq!((report.loaded, report.mismatched.len(), report.missing.len()), (0, 1, 0));
    assert_eq!(model.content(), Bag::on(&config, &Device::flex()).content());
}

#[test]
fn truth_values_are_checked_in_every_source() {
    let config = BagConfig::new(&[("t", &[4])]).kind('b');
    let truth = |key: &str, bytes: &[u8]| -> Stored { (key.into(), Dtype::BOOL, vec![bytes.len()], bytes.to_vec()) };
    for rule in [
        WeightConverter::new(["a", "b"], "t").with(Concatenate::dim(0)),
        WeightConverter::new(["a", "b"], "t").with(PermuteForRope::head_dim(2)).with(Concatenate::dim(0)),
    ] {
        let folder = folder(&[truth("a", &[0, 1]), truth("b", &[1, 9])]);
        let error = load(&config, folder.path(), &converting([rule])).expect_err("9 is no truth value");
        assert_eq!(error.to_string(), "`b` is a boolean tensor but holds the byte 9, expected 0 or 1");
    }
}

#[test]
fn rules_that_cannot_work_are_refused_with_their_reason() {
    let error = |rule: WeightTransform| ConversionMapping::new([rule]).expect_err("it cannot work").to_string();
    let convert = |sources: &[&str], targets: &[&str]| WeightConverter::new(sources, targets);
    let cases: [(WeightTransform, &str); 16] = [
        (
            WeightRenaming::new("", "a").into(),
            "the rule `` -> `a` cannot be used: the pattern `` is empty, expected one or more segments",
        ),
        (
            WeightRenaming::new("a.*", "b").into(),
            "the rule `a.*` -> `b` cannot be used: `a.*` has 1 stars and `b` has 0; a renaming carries each of them over",
        ),
        (
            WeightRenaming::new("a*", "b").into(),
            "the rule `a*` -> `b` cannot be used: `a*` in the pattern `a*` is neither a name nor `*`, which stands for one whole segment",
        ),
        (
            WeightRenaming::new("a..b", "b").into(),
            "the rule `a..b` -> `b` cannot be used: the pattern `a..b` has an empty segment",
        ),
        (
            WeightRenaming::regex("(a)b?", "$1").expect("valid").with_inverse("a", "$1").into(),
            "the rule /(a)b?/ -> `$1` cannot be used: the replacement `$1` names the group `1`, but `a` has no groups",
        ),
        (
            convert(&[], &["a"]).with(Concatenate::dim(0)).into(),
            "the rule  -> `a` cannot be used: it has no source patterns",
        ),
        (
            convert(&["a"], &[]).with(Concatenate::dim(0)).into(),
            "the rule `a` ->  cannot be used: it has no target patterns",
        ),
        (
            convert(&["a"], &["b"]).into(),
            "the rule `a` -> `b` cannot be used: it has no operations; `WeightRenaming` is for keys that only change their name",
        ),
        (
            convert(&["a", "a"], &["b"]).with(Concatenate::dim(0)).into(),
            "the rule `a`, `a` -> `b` cannot be used: the source pattern `a` is in the same rule already",
        ),
        (
            convert(&["a"], &["b", "b"]).with(Chunk::dim(0)).into(),
            "the rule `a` -> `b`, `b` cannot be used: the target pattern `b` is there twice",
        ),
        (
            convert(&["a"], &["b", "c"]).with(Transpose::dims(0, 1)).into(),
            "the rule `a` -> `b`, `c` cannot be used: its operations make 1 of 1 sources, expected 2, one for each target",
        ),
        (
            convert(&["a", "b"], &["c"]).with(MergeModulelist::dim(0)).into(),
            "the rule `a`, `b` -> `c` cannot be used: its operations make 2 of 2 sources, expected 1, one for each target",
        ),
        (
            convert(&["a"], &["c"]).with(MergeModulelist::dim(0)).into(),
            "the rule `a` -> `c` cannot be used: `a` has 0 stars and `c` has 0; the sources of `MergeModulelist` have one more, the index in the list",
        ),
        (
            convert(&["a", "b"], &["c", "d"]).with(Chunk::dim(0)).into(),
            "the rule `a`, `b` -> `c`, `d` cannot be used: Chunk(dim=0) divides one tensor, but is given 2",
        ),
        (
            convert(&["a"], &["c"]).with(PermuteForRope::head_dim(3)).into(),
            "the rule `a` -> `c` cannot be used: PermuteForRope(head_dim=3) has heads of 3 rows, expected an even number",
        ),
        (
            convert(&["a", "b"], &["c"]).with(Concatenate::dim(0).sizes([1])).into(),
            "the rule `a`, `b` -> `c` cannot be used: Concatenate(dim=0, sizes=[1]) has 1 sizes for 2 parts",
        ),
    ];
    for (rule, expected) in cases {
        assert_eq!(error(rule), expected);
    }
    let twice =
        [convert(&["a"], &["b"]).with(Transpose::dims(0, 1)), convert(&["a"], &["c"]).with(Transpose::dims(0, 1))];
    let error = ConversionMapping::new(twice).expect_err("the second is never reached");
    assert_eq!(
        error.to_string(),
        "the rule `a` -> `c` cannot be used: the source pattern `a` is in `a` -> `b` already"
    );
    let error = WeightRenaming::regex("a(", "b").expect_err("no expression");
    assert!(matches!(error, ConversionError::InvalidRule { .. }), "{error}");
}

#[test]
fn names_that_look_like_expressions_break_nothing() {
    let keys = ["a(b)", "x[y", "c$d", "^e", "f\\1", "g|h", "*", "i j", "ü", "{0}"];
    let parameters: Vec<_> = keys.iter().map(|key| (*key, &[1_usize][..])).collect();
    let stored: Vec<_> = keys.iter().map(|key| counting(key, &[1], 3)).collect();
    let rules = [
        WeightTransform::from(qkv().optional()),
        WeightRenaming::new("a", "b").optional().into(),
        WeightRenaming::regex("^z(.*)", "y$1").expect("an expression").optional().into(),
    ];
    let folder = folder(&stored);
    let (_, report) = Bag::on(&BagConfig::new(&parameters), &Device::flex())
        .load_weights_with(folder.path(), &converting(rules))
        .expect("loads");
    assert!(report.is_exact(), "{report}");
}
