//! What a conversion costs in memory: the model and no more than one tensor.

use burn::tensor::Device;
use patching_core::weights::{
    Concatenate, LoadOptions, MergeModulelist, PreTrainedModel, ReadMode, Split, SplitModulelist, Transpose,
    WeightConverter,
};

use super::bag::{Bag, BagConfig, Stored, counting, folder, mapping};
use crate::support::tensors;

const LAYERS: usize = 6;
const ROWS: usize = 256;
const COLUMNS: usize = 128;
const FLOAT: usize = 4;
/// Keys, plans, headers.
const SMALL: usize = 300_000;

/// The most memory that this thread had at a time during `work`, beyond what it had before.
fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let mut result = None;
    let info = allocation_counter::measure(|| result = Some(work()));
    (result.expect("it ran"), info.bytes_max as usize)
}

fn there_and_back(config: &BagConfig, stored: &[Stored], rules: Vec<WeightConverter>, largest: usize, copied: usize) {
    let folder = folder(stored);
    let total: usize = stored.iter().map(|(_, _, _, bytes)| bytes.len()).sum();
    let options = LoadOptions::new().conversions(mapping(rules)).read_mode(ReadMode::Read);
    // Parameters that are made at once are no measure for those of real models.
    let model = Bag::on(config, &Device::flex());
    let ((model, _), loading) = peak(|| model.load_weights_with(folder.path(), &options).expect("loads"));
    assert!(loading < total + copied + SMALL, "{loading} for {total}");

    let back = tempfile::tempdir().expect("a folder");
    let (_, saving) = peak(|| model.save_pretrained(back.path()).expect("saves"));
    assert!(saving < 2 * largest + (1 << 20) + SMALL, "{saving} for {largest}");
    assert_eq!(tensors(back.path()), tensors(folder.path()));
}

#[test]
fn joining_reads_straight_into_place() {
    let name = |layer: usize, name: &str| format!("layers.{layer}.{name}.weight");
    let shapes = [("q", ROWS), ("k", ROWS / 4), ("v", ROWS / 4)];
    let stored: Vec<_> = (0..LAYERS)
        .flat_map(|layer| shapes.map(|(part, rows)| counting(&name(layer, part), &[rows, COLUMNS], layer)))
        .collect();
    let keys: Vec<_> = (0..LAYERS).map(|layer| name(layer, "qkv")).collect();
    let shape = [ROWS + ROWS / 2, COLUMNS];
    let parameters: Vec<_> = keys.iter().map(|key| (key.as_str(), &shape[..])).collect();
    let rule = WeightConverter::new(["q", "k", "v"], "qkv").with(Concatenate::dim(0));
    there_and_back(&BagConfig::new(&parameters), &stored, vec![rule], shape[0] * COLUMNS * FLOAT, 0);
}

#[test]
fn experts_are_stacked_and_transposed_with_one_of_them_at_a_time() {
    let experts = 16;
    let stored: Vec<_> = (0..experts)
        .flat_map(|index| {
            ["gate", "up"].map(|part| counting(&format!("experts.{index}.{part}"), &[64, COLUMNS], index))
        })
        .collect();
    let one = 64 * COLUMNS * FLOAT;
    let plain = WeightConverter::new(["experts.*.gate", "experts.*.up"], "experts.gate_up")
        .with(MergeModulelist::dim(0))
        .with(Concatenate::dim(1));
    let config = BagConfig::new(&[("experts.gate_up", &[experts, 128, COLUMNS])]);
    there_and_back(&config, &stored, vec![plain.clone()], one, 0);
    let config = BagConfig::new(&[("experts.gate_up", &[experts, COLUMNS, 128])]);
    there_and_back(&config, &stored, vec![plain.with(Transpose::dims(1, 2))], one, one);
}

#[test]
fn parting_reads_only_the_part() {
    let stored = [counting("experts.both", &[16, 96, COLUMNS], 0)];
    let keys: Vec<_> = (0..16)
        .flat_map(|index| {
            [(format!("experts.{index}.l"), [32, COLUMNS]), (format!("experts.{index}.r"), [64, COLUMNS])]
        })
        .collect();
    let parameters: Vec<_> = keys.iter().map(|(key, shape)| (key.as_str(), &shape[..])).collect();
    let rule = WeightConverter::new("experts.both", ["experts.*.l", "experts.*.r"])
        .with(Split::dim(1))
        .with(SplitModulelist::dim(0));
    there_and_back(&BagConfig::new(&parameters), &stored, vec![rule], 16 * 96 * COLUMNS * FLOAT, 0);
}
