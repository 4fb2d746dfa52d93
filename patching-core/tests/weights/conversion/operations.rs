//! Each operation and chains of them: what comes into the model, and that it comes back.

use burn::tensor::Device;
use half::{bf16, f16};
use patching_core::weights::{
    Chunk, Concatenate, LoadOptions, MergeModulelist, PermuteForRope, PreTrainedModel, ReadMode, Split,
    SplitModulelist, Transpose, WeightConverter, WeightRenaming, WeightTransform,
};
use safetensors::Dtype;

use super::bag::{Bag, BagConfig, Stored, converting, counting, folder, load, mapping, saved, there_and_back};
use crate::support::{devices, tensors};

fn counted(first: usize, count: usize) -> Vec<f32> {
    (first..first + count).map(|number| number as f32).collect()
}

fn qkv() -> WeightConverter {
    WeightConverter::new(["q_proj", "k_proj", "v_proj"], "qkv_proj").with(Concatenate::dim(0))
}

#[test]
fn unequal_queries_keys_and_values_are_joined_and_parted() {
    let config = BagConfig::new(&[("layers.0.attn.qkv_proj.weight", &[8, 3]), ("layers.0.attn.qkv_proj.bias", &[8])]);
    let stored = [
        counting("layers.0.attn.q_proj.weight", &[4, 3], 0),
        counting("layers.0.attn.k_proj.weight", &[2, 3], 12),
        counting("layers.0.attn.v_proj.weight", &[2, 3], 18),
        counting("layers.0.attn.q_proj.bias", &[4], 100),
        counting("layers.0.attn.k_proj.bias", &[2], 104),
        counting("layers.0.attn.v_proj.bias", &[2], 106),
    ];
    let (model, report) = there_and_back(&config, &stored, [qkv()]);
    assert_eq!(model.floats("layers.0.attn.qkv_proj.weight"), counted(0, 24));
    assert_eq!(model.floats("layers.0.attn.qkv_proj.bias"), counted(100, 8));
    assert_eq!(report.converted.len(), 2);
    let converted = &report.converted[1];
    assert_eq!(converted.targets, ["layers.0.attn.qkv_proj.weight"]);
    let keys = ["q_proj", "k_proj", "v_proj"].map(|name| format!("layers.0.attn.{name}.weight"));
    assert_eq!(converted.sources, keys);
    assert_eq!(converted.operations, ["Concatenate(dim=0)"]);
    assert!(report.to_string().contains("converted (2):"), "{report}");
}

#[test]
fn a_clone_and_a_moved_model_remember_too() {
    let config = BagConfig::new(&[("qkv_proj", &[4])]);
    let stored = [counting("q_proj", &[2], 0), counting("k_proj", &[1], 2), counting("v_proj", &[1], 3)];
    let (model, _) = there_and_back(&config, &stored, [qkv()]);
    let copy = burn::module::Module::to_device(model.clone(), &Device::flex());
    drop(model);
    assert_eq!(saved(&copy), tensors(folder(&stored).path()));
}

#[test]
fn a_file_that_is_fused_already_is_loaded_as_it_is_and_stays_so() {
    let config = BagConfig::new(&[("attn.qkv_proj.weight", &[4, 2]), ("norm.weight", &[2])]);
    let stored = [counting("attn.qkv_proj.weight", &[4, 2], 5), counting("norm.weight", &[2], 0)];
    let (model, report) = there_and_back(&config, &stored, [qkv()]);
    assert_eq!(model.floats("attn.qkv_proj.weight"), counted(5, 8));
    assert_eq!(report.unused_rules, ["`q_proj`, `k_proj`, `v_proj` -> `qkv_proj`"]);
    assert!(report.converted.is_empty());
}

#[test]
fn a_model_without_the_target_takes_the_plain_keys() {
    let config = BagConfig::new(&[("q_proj.weight", &[2]), ("k_proj.weight", &[2]), ("v_proj.weight", &[2])]);
    let stored = ["q_proj", "k_proj", "v_proj"].map(|key| counting(&format!("{key}.weight"), &[2], 0));
    let (_, report) = there_and_back(&config, &stored, [qkv()]);
    assert_eq!(report.unused_rules.len(), 1);
}

#[test]
fn one_tensor_becomes_many() {
    let config = BagConfig::new(&[("mlp.gate.weight", &[2, 2]), ("mlp.up.weight", &[2, 2])]);
    let stored = [counting("mlp.gate_up.weight", &[4, 2], 0)];
    let rule = WeightConverter::new("gate_up", ["gate", "up"]).with(Chunk::dim(0));
    let (model, _) = there_and_back(&config, &stored, [rule]);
    assert_eq!(model.floats("mlp.up.weight"), counted(4, 4));

    // by the sizes of the targets
    let config = BagConfig::new(&[("q.weight", &[3, 4]), ("k.weight", &[3, 1]), ("v.weight", &[3, 1])]);
    let stored = [counting("qkv.weight", &[3, 6], 0)];
    let rule = WeightConverter::new("qkv", ["q", "k", "v"]).with(Split::dim(1));
    let (model, _) = there_and_back(&config, &stored, [rule]);
    assert_eq!(model.floats("k.weight"), [4.0, 10.0, 16.0]);
}

#[test]
fn many_become_many() {
    // queries, keys and values of two kinds, joined and parted in another way
    let config = BagConfig::new(&[("ab.left", &[3, 2]), ("ab.right", &[3, 2])]);
    let stored = [counting("ab.a", &[1, 4], 0), counting("ab.b", &[2, 4], 4)];
    let rule = WeightConverter::new(["a", "b"], ["left", "right"]).with(Concatenate::dim(0)).with(Chunk::dim(1));
    let (model, _) = there_and_back(&config, &stored, [rule]);
    assert_eq!(model.floats("ab.right"), [2.0, 3.0, 6.0, 7.0, 10.0, 11.0]);

    // each on its own
    let config = BagConfig::new(&[("x.c", &[2, 3]), ("x.d", &[1, 2])]);
    let stored = [counting("x.a", &[3, 2], 0), counting("x.b", &[2, 1], 10)];
    let rule = WeightConverter::new(["a", "b"], ["c", "d"]).with(Transpose::dims(0, 1));
    let (model, _) = there_and_back(&config, &stored, [rule]);
    assert_eq!(model.floats("x.c"), [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
}

fn experts(count: usize) -> Vec<Stored> {
    let names = (0..count).flat_map(|index| ["gate_proj", "up_proj", "down_proj"].map(|name| (index, name)));
    names
        .enumerate()
        .map(|(at, (index, name))| {
            let shape = if name == "down_proj" { [3, 2] } else { [2, 3] };
            counting(&format!("layers.0.mlp.experts.{index}.{name}.weight"), &shape, at * 6)
        })
        .collect()
}

fn fused_experts() -> [WeightConverter; 2] {
    let sources = ["mlp.experts.*.gate_proj.weight", "mlp.experts.*.up_proj.weight"];
    [
        WeightConverter::new(sources, "mlp.experts.gate_up_proj")
            .with(MergeModulelist::dim(0))
            .with(Concatenate::dim(1).equal()),
        WeightConverter::new("mlp.experts.*.down_proj.weight", "mlp.experts.down_proj").with(MergeModulelist::dim(0)),
    ]
}

#[test]
fn experts_become_one_tensor_in_the_order_of_their_numbers() {
    let count = 12;
    let config = BagConfig::new(&[
        ("layers.0.mlp.experts.gate_up_proj", &[count, 4, 3]),
        ("layers.0.mlp.experts.down_proj", &[count, 3, 2]),
    ]);
    let (model, _) = there_and_back(&config, &experts(count), fused_experts());
    let gate_up = model.floats("layers.0.mlp.experts.gate_up_proj");
    let down = model.floats("layers.0.mlp.experts.down_proj");
    for index in 0..count {
        assert_eq!(gate_up[index * 12..][..12], counted(index * 18, 12), "{index}");
        assert_eq!(down[index * 6..][..6], counted(index * 18 + 12, 6), "{index}");
    }
}

#[test]
fn a_stack_becomes_a_module_list() {
    let config = BagConfig::new(&[
        ("e.0.gate.weight", &[1, 2]),
        ("e.1.gate.weight", &[1, 2]),
        ("e.0.up.weight", &[2, 2]),
        ("e.1.up.weight", &[2, 2]),
    ]);
    let stored = [counting("e.gate_up", &[2, 3, 2], 0)];
    let rule = WeightConverter::new("e.gate_up", ["e.*.gate.weight", "e.*.up.weight"])
        .with(Split::dim(1))
        .with(SplitModulelist::dim(0));
    let (model, _) = there_and_back(&config, &stored, [rule]);
    assert_eq!(model.floats("e.1.gate.weight"), [6.0, 7.0]);
    assert_eq!(model.floats("e.1.up.weight"), counted(8, 4));
}

#[test]
fn a_list_becomes_another_list() {
    let config = BagConfig::new(&[("new.0", &[2]), ("new.1", &[2]), ("new.2", &[2])]);
    let stored = [counting("old.0", &[3], 0), counting("old.1", &[3], 3)];
    let rule = WeightConverter::new("old.*", "new.*").with(MergeModulelist::dim(1)).with(SplitModulelist::dim(0));
    let (model, _) = there_and_back(&config, &stored, [rule]);
    assert_eq!(model.floats("new.1"), [1.0, 4.0]);
}

#[test]
fn what_a_star_stands_for_is_carried_over() {
    let config = BagConfig::new(&[("blocks.3.mlp.fused", &[2, 2]), ("blocks.10.mlp.fused", &[2, 2])]);
    let stored: Vec<_> = [3, 10]
        .into_iter()
        .flat_map(|layer| {
            (0..2).map(move |index| counting(&format!("h.{layer}.experts.{index}.w"), &[2], layer + index))
        })
        .collect();
    let rule = WeightConverter::new("h.*.experts.*.w", "blocks.*.mlp.fused").with(MergeModulelist::dim(0));
    let (model, _) = there_and_back(&config, &stored, [rule]);
    assert_eq!(model.floats("blocks.10.mlp.fused"), [10.0, 11.0, 11.0, 12.0]);
}

#[test]
fn rope_is_permuted_for_queries_fewer_keys_and_biases() {
    let config = BagConfig::new(&[("q.weight", &[8, 1]), ("k.weight", &[4, 1]), ("q.bias", &[8]), ("k.bias", &[4])]);
    let stored = [
        counting("q.weight", &[8, 1], 0),
        counting("k.weight", &[4, 1], 10),
        counting("q.bias", &[8], 20),
        counting("k.bias", &[4], 30),
    ];
    let rules = |permute: PermuteForRope| {
        [("q", "q"), ("k", "k")].map(|(from, to)| WeightConverter::new(from, to).with(permute))
    };
    let (model, _) = there_and_back(&config, &stored, rules(PermuteForRope::head_dim(4)));
    assert_eq!(model.floats("q.weight"), [0.0, 2.0, 1.0, 3.0, 4.0, 6.0, 5.0, 7.0]);
    assert_eq!(model.floats("k.weight"), [10.0, 12.0, 11.0, 13.0]);
    assert_eq!(model.floats("k.bias"), [30.0, 32.0, 31.0, 33.0]);

    let config = BagConfig { head_dim: Some(4), ..config };
    let (by_config, _) = there_and_back(&config, &stored, rules(PermuteForRope::new()));
    assert_eq!(by_config.content(), model.content());
}

#[test]
fn rope_and_fusing_in_one_chain() {
    let config = BagConfig::new(&[("qk.weight", &[12, 2])]);
    let stored = [counting("q.weight", &[8, 2], 0), counting("k.weight", &[4, 2], 16)];
    let rule = WeightConverter::new(["q", "k"], "qk").with(PermuteForRope::head_dim(4)).with(Concatenate::dim(0));
    let (model, _) = there_and_back(&config, &stored, [rule]);
    assert_eq!(model.floats("qk.weight")[16..], [16.0, 17.0, 20.0, 21.0, 18.0, 19.0, 22.0, 23.0]);
    // first joined, then parted and permuted
    let config = BagConfig::new(&[("q.weight", &[8, 2]), ("k.weight", &[4, 2])]);
    let rule = WeightConverter::new("qk", ["q", "k"]).with(Split::dim(0)).with(PermuteForRope::head_dim(4));
    there_and_back(&config, &[counting("qk.weight", &[12, 2], 0)], [rule]);
}

#[test]
fn transposing_only_where_it_is_needed() {
    let rule = || WeightConverter::new("proj", "proj").with(Transpose::dims(1, 2).if_needed());
    let config = BagConfig::new(&[("a.proj", &[2, 3, 1]), ("b.proj", &[2, 3, 1])]);
    let stored = [counting("a.proj", &[2, 1, 3], 0), counting("b.proj", &[2, 3, 1], 0)];
    let (model, _) = there_and_back(&config, &stored, [rule()]);
    assert_eq!(model.floats("a.proj"), model.floats("b.proj"));
}

#[test]
fn renamings_chain_before_the_first_converter_that_matches() {
    let config = BagConfig::new(&[("m.mlp.gate_up", &[4]), ("m.norm.weight", &[1])]);
    let stored = [counting("m.moe.w1", &[2], 0), counting("m.moe.w3", &[2], 2), counting("m.ln.gamma", &[1], 0)];
    let rules = [
        WeightTransform::from(WeightRenaming::new("moe", "ffn")),
        WeightRenaming::new("ffn", "mlp").into(),
        WeightRenaming::regex(r"\.ln\.(\w+)$", ".norm.$1").expect("an expression").into(),
        WeightRenaming::new("norm.gamma", "norm.weight").into(),
        WeightConverter::new(["mlp.w1", "mlp.w3"], "mlp.gate_up").with(Concatenate::dim(0)).into(),
        WeightConverter::new(["w1", "mlp.w3.x"], "mlp.never").with(Concatenate::dim(0)).optional().into(),
    ];
    let (model, report) = there_and_back(&config, &stored, rules);
    assert_eq!(model.floats("m.mlp.gate_up"), counted(0, 4));
    let renamed: Vec<_> = report.renamed.iter().map(|key| (key.from.as_str(), key.to.as_str())).collect();
    assert_eq!(renamed, [("m.ln.gamma", "m.norm.weight")]);
}

#[test]
fn every_element_type_keeps_its_bits() {
    fn bytes<const N: usize>(count: usize, element: impl Fn(usize) -> [u8; N]) -> Vec<u8> {
        (0..count).flat_map(element).collect()
    }
    for dtype in [Dtype::F32, Dtype::F16, Dtype::BF16, Dtype::I64, Dtype::U8, Dtype::BOOL] {
        let data = |from: usize, count: usize| match dtype {
            Dtype::F32 => bytes(count, |at| ((from + at) as f32 + 0.3).to_le_bytes()),
            Dtype::F16 => bytes(count, |at| f16::from_f32((from + at) as f32 + 0.3).to_le_bytes()),
            Dtype::BF16 => bytes(count, |at| bf16::from_f32((from + at) as f32 + 0.3).to_le_bytes()),
            Dtype::I64 => bytes(count, |at| ((from + at) as i64).to_le_bytes()),
            Dtype::BOOL => bytes(count, |at| [(at % 2) as u8]),
            _ => bytes(count, |at| [(from + at) as u8]),
        };
        let kind = match dtype {
            Dtype::I64 | Dtype::U8 => 'i',
            Dtype::BOOL => 'b',
            _ => 'f',
        };
        let config = BagConfig::new(&[("t.joined", &[3, 3]), ("t.turned", &[2, 3])]).kind(kind);
        let stored: [Stored; 3] = [
            ("t.a".into(), dtype, vec![1, 3], data(0, 3)),
            ("t.b".into(), dtype, vec![2, 3], data(3, 6)),
            ("t.straight".into(), dtype, vec![3, 2], data(10, 6)),
        ];
        let rules = [
            WeightConverter::new(["a", "b"], "joined").with(Concatenate::dim(0)),
            WeightConverter::new("straight", "turned").with(Transpose::dims(0, 1)),
        ];
        for (name, device) in devices() {
            for mode in [ReadMode::Map, ReadMode::Read] {
                let folder = folder(&stored);
                let options = LoadOptions::new().conversions(mapping(rules.clone())).read_mode(mode);
                let (model, report) = Bag::on(&config, &device)
                    .load_weights_with(folder.path(), &options)
                    .unwrap_or_else(|error| panic!("{dtype:?} {name}: {error}"));
                // Integers get the type of the device, and are saved in it.
                if report.casts.is_empty() {
                    assert_eq!(saved(&model), tensors(folder.path()), "{dtype:?} {name} {mode:?}");
                } else {
                    assert!(kind == 'i' || name == "ndarray", "{dtype:?} {name}: {report}");
                    let expected: Vec<f32> = if dtype == Dtype::I64 || dtype == Dtype::U8 {
                        counted(0, 9)
                    } else {
                        model.floats("t.joined")
                    };
                    assert_eq!(model.floats("t.joined"), expected);
                }
            }
        }
    }
}

#[test]
fn shards_are_no_obstacle() {
    let config = BagConfig::new(&[
        ("layers.0.mlp.experts.gate_up_proj", &[5, 4, 3]),
        ("layers.0.mlp.experts.down_proj", &[5, 3, 2]),
    ]);
    let (model, _) = there_and_back(&config, &experts(5), fused_experts());
    let sharded = tempfile::tempdir().expect("a folder");
    let options = patching_core::weights::SaveOptions::new().max_shard_size(50);
    let report = model.save_pretrained_with(sharded.path(), &options).expect("saves");
    assert_eq!(report.files.len(), 15 / 2 + 1);
    assert_eq!((report.tensors, report.converted.len()), (15, 2));
    let (again, _) = load(&config, sharded.path(), &converting(fused_experts())).expect("loads");
    assert_eq!(again.content(), model.content());
}

#[test]
fn autodiff_and_casts_go_on_as_before() {
    let config = BagConfig::new(&[("qkv_proj.weight", &[4])]);
    let stored =
        [counting("q_proj.weight", &[2], 0), counting("k_proj.weight", &[1], 2), counting("v_proj.weight", &[1], 3)];
    let folder = folder(&stored);
    let options = converting([qkv()]).dtype(burn::tensor::FloatDType::F16);
    let (model, report) =
        Bag::on(&config, &Device::flex().autodiff()).load_weights_with(folder.path(), &options).expect("loads");
    assert_eq!(report.casts.len(), 1);
    assert_eq!(model.floats("qkv_proj.weight"), counted(0, 4));
}
