//! Random checkpoints under random rules: saving what was loaded gives the same file, bit for bit.

use patching_core::weights::{
    Chunk, Concatenate, ConversionOperation, LoadError, MergeModulelist, PermuteForRope, Split, SplitModulelist,
    Transpose, WeightConverter, WeightRenaming, WeightTransform,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence};
use safetensors::Dtype;

use super::bag::{Bag, BagConfig, Stored, converting, folder, load, mapping, saved, there_and_back};
use crate::support::tensors;

/// One family of rules with the sizes of everything.
#[derive(Debug, Clone)]
struct Case {
    /// Sizes of parts along the dimension that is joined or parted.
    sizes: Vec<usize>,
    /// The other dimension, if there is one.
    other: Option<usize>,
    dim: usize,
    /// Tensors in a module list; none for no list.
    list: usize,
    transpose: bool,
    rope: bool,
    /// From parts in the file to one in the model, or the other way round.
    join: bool,
    equal: bool,
    layers: Vec<u8>,
    suffixes: usize,
    rename: usize,
    dtype: usize,
    seed: u8,
}

fn cases() -> impl Strategy<Value = Case> {
    let shapes = (vec(1_usize..4, 1..4), prop::option::of(1_usize..5), 0_usize..2, 0_usize..4);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let rest = (vec(0_u8..30, 1..4), 1_usize..3, 0_usize..3, 0_usize..4, any::<u8>());
    (shapes, flags, rest).prop_map(
        |((sizes, other, dim, list), (transpose, rope, join, equal), (mut layers, suffixes, rename, dtype, seed))| {
            layers.sort_unstable();
            layers.dedup();
            Case { sizes, other, dim, list, transpose, rope, join, equal, layers, suffixes, rename, dtype, seed }
        },
    )
}

/// A config, a checkpoint for it, and the rules between them.
struct Made {
    config: BagConfig,
    stored: Vec<Stored>,
    rules: Vec<WeightTransform>,
}

impl Case {
    fn made(&self) -> Made {
        let dim = if self.other.is_some() { self.dim } else { 0 };
        let transpose = self.transpose && self.other.is_some();
        let equal = self.equal || (!self.join && self.sizes.len() == 1);
        let mut sizes: Vec<usize> = self.sizes.iter().map(|&size| if equal { self.sizes[0] } else { size }).collect();
        let mut other = self.other;
        if self.rope {
            // rows of parts before they are joined, or of what is joined before it is parted: whole heads
            match dim {
                0 => sizes.iter_mut().for_each(|size| *size *= 4),
                _ => other = other.map(|size| size * 4),
            }
        }
        let whole: usize = sizes.iter().sum();
        let shape = |size: usize| match (other, dim) {
            (None, _) => vec![size],
            (Some(other), 0) => vec![size, other],
            (Some(other), _) => vec![other, size],
        };
        let turned = |shape: Vec<usize>| if transpose { shape.into_iter().rev().collect() } else { shape };
        let listed = |mut shape: Vec<usize>| {
            if self.list > 0 {
                shape.insert(0, self.list);
            }
            shape
        };
        // In the chain: rope and transposition of each tensor, then joining or parting, then the list.
        let dim_after = if transpose { 1 - dim } else { dim };
        let mut operations = Vec::<ConversionOperation>::new();
        if self.rope {
            operations.push(PermuteForRope::head_dim(4).into());
        }
        if transpose {
            operations.push(Transpose::dims(0, 1).into());
        }
        let parts: Vec<String> = (0..sizes.len()).map(|part| format!("part{part}")).collect();
        let star = |name: &str| if self.list > 0 { format!("list.*.{name}") } else { name.to_owned() };
        let (mut sources, mut targets) = (Vec::new(), Vec::new());
        if self.join {
            operations.push(Concatenate::dim(dim_after).into());
            sources.extend(parts.iter().map(|part| star(part)));
            targets.push("whole".to_owned());
            if self.list > 0 {
                operations.push(MergeModulelist::dim(0).into());
            }
        } else {
            operations.push(if equal { Chunk::dim(dim_after).into() } else { Split::dim(dim_after).into() });
            sources.push(star("whole"));
            targets.extend(parts.iter().map(|part| star(part)));
            if self.list > 0 {
                operations.push(MergeModulelist::dim(1).into());
                operations.push(SplitModulelist::dim(1).into());
            }
        }
        let rule =
            operations.into_iter().fold(WeightConverter::new(sources.clone(), targets.clone()), WeightConverter::with);
        let mut rules: Vec<WeightTransform> = Vec::new();
        match self.rename {
            1 => rules.push(WeightRenaming::new("blocks", "layers").into()),
            2 => rules.push(WeightRenaming::regex(r"^blocks\.(\d+)\.", "layers.$1.").expect("an expression").into()),
            _ => {}
        }
        rules.push(rule.into());

        let dtype = [Dtype::F32, Dtype::F16, Dtype::BF16, Dtype::BOOL][self.dtype];
        let kind = if dtype == Dtype::BOOL { 'b' } else { 'f' };
        let layers_in_file = if self.rename > 0 { "blocks" } else { "layers" };
        let mut byte = u32::from(self.seed);
        let mut tensor = |key: String, shape: Vec<usize>| -> Stored {
            let count: usize = shape.iter().product();
            let bytes = (0..count * dtype.bitsize() / 8).map(|_| {
                byte = byte.wrapping_mul(1_103_515_245).wrapping_add(12_345);
                if dtype == Dtype::BOOL { (byte >> 16) as u8 & 1 } else { (byte >> 16) as u8 }
            });
            let bytes = bytes.collect();
            (key, dtype, shape, bytes)
        };
        let (mut stored, mut parameters) = (Vec::new(), Vec::new());
        for layer in &self.layers {
            for suffix in ["", ".extra"].iter().take(self.suffixes) {
                let items = if self.list > 0 { self.list } else { 1 };
                let fill = |pattern: &str, index: usize| pattern.replace('*', &index.to_string());
                let in_file =
                    |pattern: &str, index| format!("{layers_in_file}.{layer}.{}{suffix}", fill(pattern, index));
                let in_model = |pattern: &str, index| format!("layers.{layer}.{}{suffix}", fill(pattern, index));
                for (at, source) in sources.iter().enumerate() {
                    let size = if self.join { sizes[at] } else { whole };
                    stored.extend((0..items).map(|index| tensor(in_file(source, index), shape(size))));
                }
                for (at, target) in targets.iter().enumerate() {
                    if self.join {
                        parameters.push((in_model(target, 0), listed(turned(shape(whole))), kind));
                    } else {
                        parameters
                            .extend((0..items).map(|index| (in_model(target, index), turned(shape(sizes[at])), kind)));
                    }
                }
            }
            stored.push(tensor(format!("{layers_in_file}.{layer}.norm"), vec![2]));
            parameters.push((format!("layers.{layer}.norm"), vec![2], kind));
        }
        let config = BagConfig { model_type: "properties".into(), parameters, ..BagConfig::default() };
        Made { config, stored, rules }
    }
}

fn config(cases: u32) -> Config {
    let file = FileFailurePersistence::Direct("proptest-regressions/conversion.txt");
    Config { cases, failure_persistence: Some(Box::new(file)), ..Config::default() }
}

proptest! {
    #![proptest_config(config(192))]

    #[test]
    fn what_is_loaded_comes_back(case in cases()) {
        let Made { config, stored, rules } = case.made();
        there_and_back(&config, &stored, rules);
    }

    #[test]
    fn a_file_in_the_model_s_layout_stays_in_it(case in cases()) {
        let Made { config, rules, .. } = case.made();
        let model = Bag::on(&config, &burn::tensor::Device::flex());
        let own = folder(&[]);
        let options = patching_core::weights::SaveOptions::new()
            .layout(patching_core::weights::CheckpointLayout::Model);
        burn_save(&model, own.path(), &options);
        let (loaded, report) = load(&config, own.path(), &converting(rules)).unwrap_or_else(|error| panic!("{error}"));
        prop_assert!(report.is_exact(), "{report}");
        prop_assert_eq!(saved(&loaded), tensors(own.path()));
    }

    #[test]
    fn a_model_that_was_not_loaded_is_saved_so_that_it_loads_or_not_at_all(case in cases()) {
        let Made { config, stored, rules } = case.made();
        let model = Bag::on(&config, &burn::tensor::Device::flex());
        let there = folder(&[]);
        let rules = mapping(rules);
        let options = patching_core::weights::SaveOptions::new().conversions(rules.clone());
        use patching_core::weights::PreTrainedModel;
        match model.save_pretrained_with(there.path(), &options) {
            Ok(_) => {
                let mut expected: Vec<_> = stored.iter().map(|(key, _, shape, _)| (key.clone(), shape.clone())).collect();
                expected.sort();
                let found: Vec<_> = tensors(there.path()).into_iter().map(|(key, (_, shape, _))| (key, shape)).collect();
                prop_assert_eq!(found, expected);
                let options = patching_core::weights::LoadOptions::new().conversions(rules);
                let (again, _) = load(&config, there.path(), &options).unwrap_or_else(|error| panic!("{error}"));
                prop_assert_eq!(again.content(), model.content());
            }
            // sizes that were joined are not known without a load
            Err(error) => prop_assert!(case.join && case.sizes.len() > 1, "{}", error),
        }
    }

    #[test]
    fn a_damaged_checkpoint_is_an_error_and_never_a_panic(
        case in cases(),
        damage in vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), "[0-9a-z*.-]{0,12}"), 1..3),
    ) {
        let Made { config, mut stored, rules } = case.made();
        for (which, segment, text) in damage {
            let at = which.index(stored.len());
            let mut segments: Vec<String> = stored[at].0.split('.').map(str::to_owned).collect();
            let segment = segment.index(segments.len());
            segments[segment] = text;
            let key = segments.join(".");
            if stored.iter().all(|(other, ..)| *other != key) {
                stored[at].0 = key;
            }
        }
        let there = folder(&stored);
        match load(&config, there.path(), &converting(rules)) {
            Ok((_, report)) => prop_assert!(report.missing.is_empty()),
            Err(LoadError::Weights(_)) => {}
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}

fn burn_save(model: &Bag, dir: &std::path::Path, options: &patching_core::weights::SaveOptions) {
    use patching_core::weights::PreTrainedModel;
    model.save_pretrained_with(dir, options).expect("saves");
}
