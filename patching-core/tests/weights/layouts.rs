//! How layers are laid out in a checkpoint.

use std::fs;

use burn::module::{Module, Param};
use burn::nn::conv::{Conv1d, Conv1dConfig, Conv2d, Conv2dConfig};
use burn::nn::{
    BatchNorm, BatchNormConfig, Embedding, EmbeddingConfig, GroupNorm, GroupNormConfig, LayerNorm, LayerNormConfig,
    Linear, LinearConfig, LinearLayout, PRelu, PReluConfig, RmsNorm, RmsNormConfig,
};
use burn::tensor::{Bool, Device, Int, Tensor, TensorData};
use patching_core::class::Init;
use patching_core::weights::{
    LayoutRules, LoadError, LoadOptions, ParameterLayout, PreTrainedModel, ReadError, SaveOptions,
};

use crate::support::{ToyConfig, devices, tensors, values};

#[derive(Module, Debug)]
enum Choice {
    Wide(Linear),
    Normed(RmsNorm),
}

#[derive(Module, Debug)]
struct OwnLayer {
    kernel: Param<Tensor<2>>,
    steps: Vec<Param<Tensor<1>>>,
}

/// One of everything.
#[derive(Module, Debug)]
struct Zoo {
    linear: Linear,
    column: Linear,
    as_stored: Linear,
    embedding: Embedding,
    layer_norm: LayerNorm,
    rms_norm: RmsNorm,
    group_norm: GroupNorm,
    batch_norm: BatchNorm,
    conv1d: Conv1d,
    conv2d: Conv2d,
    act: PRelu,
    choice: Choice,
    own: OwnLayer,
    logit_scale: Param<Tensor<1>>,
    ids: Param<Tensor<1, Int>>,
    mask: Param<Tensor<2, Bool>>,
    // what Rust has no field for, and what it has a raw one for
    self_: PRelu,
    r#type: Param<Tensor<1>>,
    #[module(skip)]
    config: ToyConfig,
}

impl PreTrainedModel for Zoo {
    type Config = ToyConfig;
    const CLASS_NAME: &'static str = "Zoo";
    const BASE_MODEL_PREFIX: &'static str = "";

    fn new(config: &ToyConfig, init: &Init) -> Self {
        let device = init.device();
        let random = |shape| Tensor::<2>::random(shape, burn::tensor::Distribution::Default, device);
        Self {
            linear: LinearConfig::new(2, 3).init(device),
            column: LinearConfig::new(3, 3).with_layout(LinearLayout::Col).init(device),
            as_stored: LinearConfig::new(2, 3).with_bias(false).init(device),
            embedding: EmbeddingConfig::new(5, 2).init(device),
            layer_norm: LayerNormConfig::new(2).init(device),
            rms_norm: RmsNormConfig::new(2).init(device),
            group_norm: GroupNormConfig::new(1, 2).init(device),
            batch_norm: BatchNormConfig::new(2).init(device),
            conv1d: Conv1dConfig::new(2, 3, 2).init(device),
            conv2d: Conv2dConfig::new([2, 3], [2, 1]).init(device),
            act: PReluConfig::new().init(device),
            choice: Choice::Wide(LinearConfig::new(2, 3).init(device)),
            own: OwnLayer {
                kernel: Param::from_tensor(random([2, 3])),
                steps: vec![Param::from_tensor(random([1, 2]).squeeze_dim(0)); 2],
            },
            logit_scale: Param::from_tensor(random([1, 1]).squeeze_dim(0)),
            ids: Param::initialized(burn::module::ParamId::new(), Tensor::from_data([3, 1, 2], device)),
            mask: Param::initialized(burn::module::ParamId::new(), Tensor::from_data([[true, false]], device)),
            self_: PReluConfig::new().init(device),
            r#type: Param::from_tensor(random([1, 1]).squeeze_dim(0)),
            config: config.clone(),
        }
    }

    fn config(&self) -> &ToyConfig {
        &self.config
    }

    fn layouts(_: &ToyConfig) -> LayoutRules {
        LayoutRules::default()
            .layer("OwnLayer", "kernel", ParameterLayout::same().named("weight").transposed(0, 1))
            .layer("OwnLayer", "steps", ParameterLayout::same().named("step"))
            .path("as_stored.weight", ParameterLayout::same())
            .path("logit_scale", ParameterLayout::same().scalar())
    }
}

fn zoo(device: &Device) -> Zoo {
    Zoo::new(&ToyConfig::small(), &Init::new(device))
}

#[test]
fn names_and_shapes_are_pytorch_s() {
    let folder = tempfile::tempdir().expect("a folder");
    zoo(&Device::flex()).save_pretrained(folder.path()).expect("saves");
    let saved: Vec<_> =
        tensors(folder.path()).into_iter().map(|(key, (dtype, shape, _))| format!("{key} {dtype} {shape:?}")).collect();
    let expected = [
        "act.weight F32 [1]",
        "as_stored.weight F32 [2, 3]",
        "batch_norm.bias F32 [2]",
        "batch_norm.running_mean F32 [2]",
        "batch_norm.running_var F32 [2]",
        "batch_norm.weight F32 [2]",
        "choice.bias F32 [3]",
        "choice.weight F32 [3, 2]",
        "column.bias F32 [3]",
        "column.weight F32 [3, 3]",
        "conv1d.bias F32 [3]",
        "conv1d.weight F32 [3, 2, 2]",
        "conv2d.bias F32 [3]",
        "conv2d.weight F32 [3, 2, 2, 1]",
        "embedding.weight F32 [5, 2]",
        "group_norm.bias F32 [2]",
        "group_norm.weight F32 [2]",
        "ids I32 [3]",
        "layer_norm.bias F32 [2]",
        "layer_norm.weight F32 [2]",
        "linear.bias F32 [3]",
        "linear.weight F32 [3, 2]",
        "logit_scale F32 []",
        "mask BOOL [1, 2]",
        "own.step.0 F32 [2]",
        "own.step.1 F32 [2]",
        "own.weight F32 [3, 2]",
        "rms_norm.weight F32 [2]",
        "self.weight F32 [1]",
        "type F32 [1]",
    ];
    assert_eq!(saved.join("\n").replace("ids I64", "ids I32"), expected.join("\n"));
}

#[test]
fn every_layer_comes_back_on_every_device() {
    for (name, device) in devices() {
        let folder = tempfile::tempdir().expect("a folder");
        let model = zoo(&device);
        let ids: TensorData = model.ids.val().into_data();
        model.save_pretrained(folder.path()).expect("saves");

        let initialised = zoo(&device);
        let _ = values(&initialised);
        for target in [zoo(&device), initialised] {
            let (loaded, report) =
                target.load_weights_with(folder.path(), &LoadOptions::new()).unwrap_or_else(|error| panic!("{error}"));
            assert!(report.is_exact(), "{name}: {report}");
            assert_eq!(values(&loaded), values(&model), "{name}");
            assert_eq!(loaded.ids.val().into_data(), ids, "{name}");
            assert_eq!(loaded.mask.val().into_data(), model.mask.val().into_data(), "{name}");
        }
    }
}

#[test]
fn rules_of_the_caller_come_first_on_both_ways() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = zoo(&Device::flex());
    let rules = || LayoutRules::default().layer("RmsNorm", "gamma", ParameterLayout::same().named("scale"));
    model.save_pretrained_with(folder.path(), &SaveOptions::new().layouts(rules())).expect("saves");
    assert!(tensors(folder.path()).contains_key("rms_norm.scale"));

    let load = |options: &LoadOptions| zoo(&Device::flex()).load_weights_with(folder.path(), options);
    let (loaded, _) = load(&LoadOptions::new().layouts(rules())).expect("loads");
    assert_eq!(values(&loaded), values(&model));
    assert!(matches!(load(&LoadOptions::new()), Err(LoadError::Weights(_))));
}

#[test]
fn a_rule_that_does_not_suit_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let rules = LayoutRules::default().path("linear.bias", ParameterLayout::same().transposed(0, 1));
    let model = zoo(&Device::flex());
    let error = model.save_pretrained_with(folder.path(), &SaveOptions::new().layouts(rules.clone()));
    assert_eq!(
        error.expect_err("no second dimension").to_string(),
        "the layout rule for `linear.bias` does not suit its shape [3]"
    );
    model.save_pretrained(folder.path()).expect("saves");
    let error = model.load_weights_with(folder.path(), &LoadOptions::new().layouts(rules));
    assert!(matches!(error, Err(LoadError::InvalidLayout { .. })));
}

#[test]
fn two_parameters_of_one_key_are_an_error() {
    let rules = LayoutRules::default().path("linear.weight", ParameterLayout::same().named("bias"));
    let folder = tempfile::tempdir().expect("a folder");
    let error = zoo(&Device::flex()).save_pretrained_with(folder.path(), &SaveOptions::new().layouts(rules));
    assert_eq!(
        error.expect_err("a clash").to_string(),
        "the parameters `linear.weight` and `linear.bias` of the model both have the key `linear.bias`"
    );
}

#[test]
fn a_truth_value_is_zero_or_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.safetensors");
    zoo(&Device::flex()).save_pretrained(folder.path()).expect("saves");
    let mut bytes = fs::read(&path).expect("reads");
    // Booleans are the narrowest elements and so the last.
    *bytes.last_mut().expect("not empty") = 7;
    fs::write(&path, bytes).expect("writes");
    let error = zoo(&Device::flex()).load_weights(folder.path()).expect_err("7 is no truth value");
    assert!(matches!(error, LoadError::Read(ReadError::InvalidBool { value: 7, .. })), "{error}");
}
