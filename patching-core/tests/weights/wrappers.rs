//! Replacements that keep their original leave no trace in a checkpoint.

use std::cell::Cell;

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use patching_core::capture::OutputRecorders;
use patching_core::class::{all_slots, slots};
use patching_core::patch::{PatchSet, ReplacementClass, class};
use patching_core::prelude::*;
use patching_core::weights::{
    Concatenate, ConversionMapping, LayoutRules, LoadOptions, ParameterLayout, SaveOptions, WeightConverter,
    register_checkpoint_conversion_mapping, unregister_checkpoint_conversion_mapping,
};

use crate::support::{ToyConfig, file_of, tensors, values};

fn linear(input: usize, output: usize, init: &Init) -> Linear {
    LinearConfig::new(input, output).with_bias(false).init(init.device())
}

/// With a square weight, which fits both ways.
#[derive(Module, Debug)]
pub struct WrapProj {
    q: Linear,
    k: Linear,
    c_proj: Linear,
}

#[module_class]
impl WrapProj {
    pub fn new(init: &Init) -> Self {
        Self { q: linear(2, 3, init), k: linear(2, 1, init), c_proj: linear(2, 2, init) }
    }
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.c_proj.forward(x)
    }
}

#[derive(Module, Debug)]
pub struct FusedProj {
    qk: Linear,
    c_proj: Linear,
}

#[replaces(WrapProj)]
impl FusedProj {
    pub fn new(init: &Init) -> Self {
        Self { qk: linear(2, 4, init), c_proj: linear(2, 2, init) }
    }
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.c_proj.forward(x)
    }
}

#[derive(Module, Debug)]
pub struct WrapBlock {
    proj: Slot<WrapProj>,
}

#[module_class]
impl WrapBlock {
    pub fn new(init: &Init) -> Self {
        Self { proj: WrapProj::slot(init) }
    }
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.proj.forward(x)
    }
}

#[derive(Module, Debug)]
pub struct KeepsBlock {
    original: Slot<WrapBlock>,
}

#[replaces(WrapBlock)]
impl KeepsBlock {
    pub fn new(init: &Init) -> Self {
        Self { original: WrapBlock::slot(init) }
    }
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.original.forward(x)
    }
}

/// Two of what it replaces: neither is the original.
#[derive(Module, Debug)]
pub struct TwoBlocks {
    one: Slot<WrapBlock>,
    two: Slot<WrapBlock>,
}

#[replaces(WrapBlock)]
impl TwoBlocks {
    pub fn new(init: &Init) -> Self {
        Self { one: WrapBlock::slot(init), two: WrapBlock::slot(init) }
    }
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.two.forward(self.one.forward(x))
    }
}

#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant, reason = "there are few")]
pub enum Choice {
    Block(WrapBlock),
    Nothing(Linear),
}

#[derive(Module, Debug)]
pub struct WrapModel {
    layers: Vec<Slot<WrapBlock>>,
    choice: Choice,
    recorders: OutputRecorders,
    #[module(skip)]
    config: ToyConfig,
}

thread_local! {
    static CONSTRUCTED: Cell<usize> = const { Cell::new(0) };
}

impl PreTrainedModel for WrapModel {
    type Config = ToyConfig;
    const CLASS_NAME: &'static str = "WrapModel";
    const BASE_MODEL_PREFIX: &'static str = "model";

    fn new(config: &ToyConfig, init: &Init) -> Self {
        CONSTRUCTED.set(CONSTRUCTED.get() + 1);
        let layers = (0..config.num_hidden_layers).map(|_| WrapBlock::slot(init)).collect();
        let choice = Choice::Block(WrapBlock::new(init));
        Self { layers, choice, recorders: OutputRecorders::default(), config: config.clone() }
    }

    fn config(&self) -> &ToyConfig {
        &self.config
    }

    fn tied_parameters(config: &ToyConfig) -> Vec<(String, String)> {
        let tied = ("layers.1.proj.c_proj.weight".to_owned(), "choice.proj.c_proj.weight".to_owned());
        if config.tie_word_embeddings { vec![tied] } else { Vec::new() }
    }

    fn layouts(_: &ToyConfig) -> LayoutRules {
        let same = ParameterLayout::same;
        LayoutRules::default()
            .path("layers.0.proj.c_proj.weight", same())
            .path("choice.proj.c_proj.weight", same())
            .path("layers.1.proj.c_proj.weight", same().named("c_weight"))
    }
}

fn built(layers: usize, patches: &[(&str, ReplacementClass)]) -> WrapModel {
    let config = ToyConfig { num_hidden_layers: layers, ..ToyConfig::small() };
    let patches = PatchSet::new(patches.iter().cloned()).expect("a valid set");
    WrapModel::from_config_with(&config, &Device::flex(), &patches).expect("constructs").0
}

fn keeps() -> (&'static str, ReplacementClass) {
    ("WrapBlock", class::<KeepsBlock>())
}

fn save(model: &WrapModel, options: &SaveOptions) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    model.save_pretrained_with(folder.path(), options).unwrap_or_else(|error| panic!("{error}"));
    folder
}

fn shapes(folder: &tempfile::TempDir) -> Vec<String> {
    tensors(folder.path()).into_iter().map(|(key, (_, shape, _))| format!("{key} {shape:?}")).collect()
}

#[test]
fn layouts_for_paths_hold_inside_wrappers_and_enums() {
    let plain = built(2, &[]);
    let folder = save(&plain, &SaveOptions::new());
    assert!(shapes(&folder).contains(&"layers.1.proj.c_proj.c_weight [2, 2]".to_owned()));
    let file = |key: &str| tensors(folder.path()).remove(key).expect("is there").2;
    let own = |model: &WrapModel, path: &str| -> Vec<u8> {
        values(model).remove(path).expect("is there").1.iter().flat_map(|value| value.to_le_bytes()).collect()
    };
    // as it is in the file, not transposed
    assert_eq!(own(&plain, "choice.Block.proj.c_proj.weight"), file("choice.proj.c_proj.weight"));
    assert_ne!(own(&plain, "layers.1.proj.q.weight"), file("layers.1.proj.q.weight"));

    let wrapped = built(2, &[keeps()]).load_weights(folder.path()).expect("the keys are the same");
    for (layer, name) in [0, 1].into_iter().flat_map(|layer| ["q", "k", "c_proj"].map(|name| (layer, name))) {
        assert_eq!(
            own(&wrapped, &format!("layers.{layer}.original.proj.{name}.weight")),
            own(&plain, &format!("layers.{layer}.proj.{name}.weight")),
            "{layer} {name}"
        );
    }
    assert_eq!(tensors(save(&wrapped, &SaveOptions::new()).path()), tensors(folder.path()));
}

#[test]
fn ties_are_told_by_paths_without_wrappers_and_variants() {
    let config = ToyConfig::tied();
    let patches = PatchSet::new([keeps()]).expect("a valid set");
    let (model, _) = WrapModel::from_config_with(&config, &Device::flex(), &patches).expect("constructs");
    let all = values(&model);
    assert_eq!(all["layers.1.original.proj.c_proj.weight"], all["choice.Block.proj.c_proj.weight"]);
    let folder = tempfile::tempdir().expect("a folder");
    let report = model.save_pretrained(folder.path()).expect("saves");
    assert_eq!((report.tied.len(), report.tied[0].key.as_str()), (1, "layers.1.proj.c_proj.c_weight"));
}

#[test]
fn of_two_originals_each_keeps_its_name() {
    let model = built(1, &[("WrapBlock", class::<TwoBlocks>())]);
    let blocks = |slot: &patching_core::class::SlotInfo| (slot.class == "WrapBlock").then(|| slot.path.clone());
    let paths: Vec<_> = all_slots(&model).iter().filter_map(blocks).collect();
    assert_eq!(paths, ["layers.0", "layers.0.one", "layers.0.two"]);
    // both are the replacement's own affair
    let own: Vec<_> = slots::<WrapBlock, _>(&model).into_iter().map(|(path, _)| path).collect();
    assert_eq!(own, ["layers.0"]);

    let folder = save(&model, &SaveOptions::new());
    let keys: Vec<_> = tensors(folder.path()).into_keys().filter(|key| key.contains("c_proj")).collect();
    assert_eq!(
        keys,
        ["choice.proj.c_proj.weight", "layers.0.one.proj.c_proj.weight", "layers.0.two.proj.c_proj.weight"]
    );
    let again = built(1, &[("WrapBlock", class::<TwoBlocks>())]).load_weights(folder.path()).expect("loads");
    assert_eq!(values(&again), values(&model));
}

#[test]
fn a_rule_for_a_replacement_inside_a_wrapper_is_undone_by_one_construction() {
    let layers = 12;
    let plain = save(&built(layers, &[]), &SaveOptions::new());
    let patches = [keeps(), ("WrapProj", class::<FusedProj>())];
    let rule = WeightConverter::new(["q.weight", "k.weight"], "qk.weight").with(Concatenate::dim(0));
    let rules = ConversionMapping::new([rule]).expect("a mapping");

    // sizes are those of the model without patches, which is constructed once for all layers
    let fresh = built(layers, &patches);
    let folder = tempfile::tempdir().expect("a folder");
    let before = CONSTRUCTED.get();
    let options = SaveOptions::new().conversions(rules.clone());
    let report = fresh.save_pretrained_with(folder.path(), &options).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(CONSTRUCTED.get() - before, 1);
    assert_eq!(shapes(&folder), shapes(&plain));
    assert_eq!(report.converted.len(), layers + 1);
    let counts = report.converted.iter().map(|made| (made.sources.len(), made.targets.len()));
    assert!(counts.clone().all(|count| count == (1, 2)), "{report}");
    assert!(report.to_string().contains("13 parameters were converted back to 26 tensors"), "{report}");

    // and what was loaded is saved as it was
    let options = LoadOptions::new().conversions(rules);
    let (model, report) = built(layers, &patches).load_weights_with(plain.path(), &options).expect("loads");
    assert!(report.is_exact(), "{report}");
    assert_eq!(report.converted.len(), layers + 1);
    let before = CONSTRUCTED.get();
    let again = save(&model, &SaveOptions::new());
    assert_eq!(tensors(again.path()), tensors(plain.path()));
    assert_eq!(CONSTRUCTED.get(), before);
}

#[test]
fn a_square_weight_in_a_file_written_elsewhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let square: &[f32] = &[0.0, 1.0, 2.0, 3.0];
    let (q, k): (&[f32], &[f32]) = (&[0.0; 6], &[0.0; 2]);
    let tensors = ["layers.0", "choice"].map(|part| {
        let key = |name: &str| format!("{part}.proj.{name}.weight");
        [(key("q"), [3, 2], q), (key("k"), [1, 2], k), (key("c_proj"), [2, 2], square)]
    });
    let tensors: Vec<_> =
        tensors.iter().flatten().map(|(key, shape, values)| (key.as_str(), &shape[..], *values)).collect();
    std::fs::write(folder.path().join("model.safetensors"), file_of(&tensors)).expect("writes");
    let (model, report) = built(1, &[keeps()]).load_weights_with(folder.path(), &LoadOptions::new()).expect("loads");
    assert!(report.is_exact(), "{report}");
    assert_eq!(values(&model)["layers.0.original.proj.c_proj.weight"].1, square);
    assert_eq!(values(&model)["choice.Block.proj.c_proj.weight"].1, square);
}

#[test]
fn conversions_for_a_module_class_are_told() {
    let folder = save(&built(1, &[]), &SaveOptions::new());
    let rule = || [WeightConverter::new(["a", "b"], "c").with(Concatenate::dim(0))];
    for name in ["WrapProj", "FusedProj"] {
        register_checkpoint_conversion_mapping(name, rule()).expect("registers, with a warning");
    }
    let (_, report) = built(1, &[keeps()]).load_weights_with(folder.path(), &LoadOptions::new()).expect("loads");
    for name in ["WrapProj", "FusedProj"] {
        unregister_checkpoint_conversion_mapping(name).expect("is registered");
    }
    // `FusedProj` is not in this model
    assert_eq!(report.unused_conversions.len(), 1);
    let expected = "`WrapProj` is a class inside the model, and conversions registered for it are not used: they are registered \
                    for a model type or the class name of a model, here `WrapModel`, `llama`";
    assert!(report.to_string().contains(expected), "{report}");
}
