//! A model whose parameters are those that its config lists, under any names.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use burn::module::{
    Content, Devices, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor, Param, ParamId,
};
use burn::tensor::{Bool, Device, Int, Tensor, TensorData};
use patching_core::capture::OutputRecorders;
use patching_core::class::Init;
use patching_core::weights::{
    ConversionMapping, LoadError, LoadOptions, LoadReport, PreTrainedModel, PretrainedConfig, Submodel, WeightTransform,
};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::support::{Tensors, tensors};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct BagConfig {
    pub(super) model_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) head_dim: Option<usize>,
    /// Key, shape, and `f`, `i` or `b`.
    pub(super) parameters: Vec<(String, Vec<usize>, char)>,
    #[serde(default)]
    pub(super) submodels: Vec<[String; 3]>,
    #[serde(default)]
    pub(super) ties: Vec<[String; 2]>,
    #[serde(default)]
    pub(super) implied_ties: Vec<[String; 2]>,
}

impl BagConfig {
    pub(super) fn new(parameters: &[(&str, &[usize])]) -> Self {
        let parameters = parameters.iter().map(|(key, shape)| ((*key).to_owned(), shape.to_vec(), 'f')).collect();
        Self { model_type: "bag".into(), parameters, ..Self::default() }
    }

    pub(super) fn model_type(self, model_type: &str) -> Self {
        Self { model_type: model_type.into(), ..self }
    }

    pub(super) fn kind(mut self, kind: char) -> Self {
        for parameter in &mut self.parameters {
            parameter.2 = kind;
        }
        self
    }
}

impl PretrainedConfig for BagConfig {
    const MODEL_TYPES: &'static [&'static str] = &["bag", "registry_folder"];

    fn set_attn_implementation(&mut self, _: &str) {}

    fn attn_implementation(&self) -> Option<&str> {
        None
    }
}

macro_rules! any_parameter {
    ($($variant:ident($type:ty)),*) => {
        #[derive(Clone, Debug)]
        enum Any { $($variant(Param<$type>)),* }

        macro_rules! each {
            ($any:expr, $param:ident => $body:expr) => { match $any { $(Any::$variant($param) => $body),* } };
        }
        macro_rules! map_each {
            ($any:expr, $param:ident => $body:expr) => { match $any { $(Any::$variant($param) => Any::$variant($body)),* } };
        }
    };
}
any_parameter!(
    F1(Tensor<1>),
    F2(Tensor<2>),
    F3(Tensor<3>),
    F4(Tensor<4>),
    I1(Tensor<1, Int>),
    I2(Tensor<2, Int>),
    I3(Tensor<3, Int>),
    B1(Tensor<1, Bool>),
    B2(Tensor<2, Bool>),
    B3(Tensor<3, Bool>)
);

impl Any {
    fn new(shape: &[usize], kind: char, first: usize, device: &Device) -> Self {
        let count: usize = shape.iter().product();
        let id = ParamId::new;
        macro_rules! made {
            ($data:expr) => {
                Param::initialized(id(), Tensor::from_data(TensorData::new($data, shape.to_vec()), device))
            };
        }
        macro_rules! floats {
            () => {
                made!((first..first + count).map(|number| number as f32).collect::<Vec<_>>())
            };
        }
        macro_rules! ints {
            () => {
                made!((0..count).map(|number| number as i32 % 100).collect::<Vec<_>>())
            };
        }
        macro_rules! bools {
            () => {
                made!((0..count).map(|number| number % 3 == 0).collect::<Vec<_>>())
            };
        }
        match (kind, shape.len()) {
            ('f', 1) => Self::F1(floats!()),
            ('f', 2) => Self::F2(floats!()),
            ('f', 3) => Self::F3(floats!()),
            ('f', 4) => Self::F4(floats!()),
            ('i', 1) => Self::I1(ints!()),
            ('i', 2) => Self::I2(ints!()),
            ('i', 3) => Self::I3(ints!()),
            ('b', 1) => Self::B1(bools!()),
            ('b', 2) => Self::B2(bools!()),
            ('b', 3) => Self::B3(bools!()),
            other => panic!("no parameter of {other:?}"),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Bag {
    pub(super) config: BagConfig,
    parameters: Vec<(String, Any)>,
    recorders: OutputRecorders,
}

impl Bag {
    pub(super) fn on(config: &BagConfig, device: &Device) -> Self {
        let mut first = 0;
        let parameters = config.parameters.iter().map(|(key, shape, kind)| {
            first += 1000;
            (key.clone(), Any::new(shape, *kind, first, device))
        });
        Self { config: config.clone(), parameters: parameters.collect(), recorders: OutputRecorders::default() }
    }

    /// With the parameters of `patched`, though the config says otherwise.
    pub(super) fn patched(config: &BagConfig, patched: &BagConfig) -> Self {
        let parameters = Self::on(patched, &Device::flex()).parameters;
        Self { config: config.clone(), parameters, recorders: OutputRecorders::default() }
    }

    /// Puts the parameters of another in the place of its own.
    pub(super) fn take_parameters(&mut self, other: Self) {
        self.parameters = other.parameters;
    }

    /// Every parameter as bytes, with its shape.
    pub(super) fn content(&self) -> BTreeMap<String, (Vec<usize>, Vec<u8>)> {
        let content = |any: &Any| each!(any, param => param.val().into_data());
        self.parameters
            .iter()
            .map(|(key, any)| {
                let data = content(any);
                (key.clone(), (data.shape().as_slice().to_vec(), data.bytes().to_vec()))
            })
            .collect()
    }

    pub(super) fn floats(&self, key: &str) -> Vec<f32> {
        let (_, any) = self.parameters.iter().find(|(other, _)| other == key).expect("it is there");
        let data = each!(any, param => param.val().into_data());
        data.iter::<f32>().collect()
    }
}

impl Module for Bag {
    fn collect_devices(&self, devices: Devices) -> Devices {
        self.parameters.iter().fold(devices, |devices, (_, any)| each!(any, param => param.collect_devices(devices)))
    }
    fn fork(mut self, device: &Device) -> Self {
        self.parameters =
            self.parameters.into_iter().map(|(key, any)| (key, map_each!(any, param => param.fork(device)))).collect();
        self
    }
    fn to_device(mut self, device: &Device) -> Self {
        self.parameters = self
            .parameters
            .into_iter()
            .map(|(key, any)| (key, map_each!(any, param => param.to_device(device))))
            .collect();
        self
    }
    fn train(self) -> Self {
        self
    }
    fn valid(&self) -> Self {
        self.clone()
    }
    fn materialize(self) -> Self {
        self
    }
    fn num_params(&self) -> usize {
        self.parameters.len()
    }
    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        for (key, any) in &self.parameters {
            for segment in key.split('.') {
                visitor.enter_module(segment, "Struct:Bag");
            }
            each!(any, param => param.visit(visitor));
            for segment in key.split('.') {
                visitor.exit_module(segment, "Struct:Bag");
            }
        }
        visitor.enter_module("recorders", "Struct:Bag");
        self.recorders.visit(visitor);
        visitor.exit_module("recorders", "Struct:Bag");
    }
    fn map<M: ModuleMapper>(self, mapper: &mut M) -> Self {
        let Self { config, parameters, recorders } = self;
        let parameters = parameters
            .into_iter()
            .map(|(key, any)| {
                for segment in key.split('.') {
                    mapper.enter_module(segment, "Struct:Bag");
                }
                let any = map_each!(any, param => Module::map(param, mapper));
                for segment in key.split('.') {
                    mapper.exit_module(segment, "Struct:Bag");
                }
                (key, any)
            })
            .collect();
        mapper.enter_module("recorders", "Struct:Bag");
        let recorders = recorders.map(mapper);
        mapper.exit_module("recorders", "Struct:Bag");
        Self { config, parameters, recorders }
    }
}

impl ModuleDisplayDefault for Bag {
    fn content(&self, content: Content) -> Option<Content> {
        Some(content)
    }
}

impl ModuleDisplay for Bag {}

impl PreTrainedModel for Bag {
    type Config = BagConfig;
    const CLASS_NAME: &'static str = "BagModel";
    const BASE_MODEL_PREFIX: &'static str = "model";

    fn new(config: &BagConfig, init: &Init) -> Self {
        Self::on(config, init.device())
    }

    fn config(&self) -> &BagConfig {
        &self.config
    }

    fn submodels(config: &BagConfig) -> Vec<Submodel> {
        config.submodels.iter().map(|[path, class, model_type]| Submodel::new(path, class, model_type)).collect()
    }

    fn tied_parameters(config: &BagConfig) -> Vec<(String, String)> {
        config.ties.iter().map(|[tied, source]| (tied.clone(), source.clone())).collect()
    }

    fn implied_ties(config: &BagConfig) -> Vec<(String, String)> {
        config.implied_ties.iter().map(|[tied, source]| (tied.clone(), source.clone())).collect()
    }
}

/// A head on a bag.
#[derive(Module, Debug)]
pub(super) struct BagHead {
    pub(super) model: Bag,
    pub(super) score: Param<Tensor<1>>,
}

impl PreTrainedModel for BagHead {
    type Config = BagConfig;
    const CLASS_NAME: &'static str = "BagForScoring";
    const BASE_MODEL_PREFIX: &'static str = "model";

    fn new(config: &BagConfig, init: &Init) -> Self {
        let score = Param::initialized(ParamId::new(), Tensor::from_data([0.5_f32, 0.25], init.device()));
        Self { model: Bag::on(config, init.device()), score }
    }

    fn config(&self) -> &BagConfig {
        &self.model.config
    }
}

/// A tensor of a file.
pub(super) type Stored = (String, Dtype, Vec<usize>, Vec<u8>);

/// Floats that count from `first`.
pub(super) fn counting(key: &str, shape: &[usize], first: usize) -> Stored {
    let count: usize = shape.iter().product();
    let bytes = (first..first + count).flat_map(|number| (number as f32).to_le_bytes()).collect();
    (key.to_owned(), Dtype::F32, shape.to_vec(), bytes)
}

pub(super) fn write(dir: &Path, stored: &[Stored]) {
    let views = stored.iter().map(|(key, dtype, shape, bytes)| {
        (key.as_str(), TensorView::new(*dtype, shape.clone(), bytes).expect("shape and bytes agree"))
    });
    let file = safetensors::serialize(views, None).expect("it serialises");
    fs::write(dir.join("model.safetensors"), file).expect("it writes");
}

/// A folder with these tensors.
pub(super) fn folder(stored: &[Stored]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), stored);
    folder
}

pub(super) fn mapping<R: Into<WeightTransform>>(rules: impl IntoIterator<Item = R>) -> ConversionMapping {
    ConversionMapping::new(rules).unwrap_or_else(|error| panic!("{error}"))
}

pub(super) fn converting<R: Into<WeightTransform>>(rules: impl IntoIterator<Item = R>) -> LoadOptions {
    LoadOptions::new().conversions(mapping(rules))
}

pub(super) fn load(config: &BagConfig, dir: &Path, options: &LoadOptions) -> Result<(Bag, LoadReport), LoadError> {
    Bag::on(config, &Device::flex()).load_weights_with(dir, options)
}

/// The tensors that saving gives.
pub(super) fn saved<M: PreTrainedModel>(model: &M) -> Tensors {
    let folder = tempfile::tempdir().expect("a folder");
    model.save_pretrained(folder.path()).unwrap_or_else(|error| panic!("{error}"));
    tensors(folder.path())
}

/// Loads, and checks that saving gives what was loaded, bit for bit.
pub(super) fn there_and_back<R: Into<WeightTransform>>(
    config: &BagConfig,
    stored: &[Stored],
    rules: impl IntoIterator<Item = R>,
) -> (Bag, LoadReport) {
    let folder = folder(stored);
    let (model, report) = load(config, folder.path(), &converting(rules)).unwrap_or_else(|error| panic!("{error}"));
    assert!(report.is_exact(), "{report}");
    assert_eq!(saved(&model), tensors(folder.path()));
    (model, report)
}
