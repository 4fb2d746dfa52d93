//! Base models in variants of enums, in slots and in wrappers: rules for their class find them.

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use patching_core::capture::OutputRecorders;
use patching_core::prelude::*;
use patching_core::weights::{
    WeightRenaming, register_checkpoint_conversion_mapping as register,
    unregister_checkpoint_conversion_mapping as unregister,
};

use super::bag::{BagConfig, counting, folder, saved};
use crate::support::{tensors, values};

#[derive(Module, Debug)]
pub struct TowerModel {
    proj: Linear,
    recorders: OutputRecorders,
}

#[module_class]
impl TowerModel {
    pub fn new(init: &Init) -> Self {
        let proj = LinearConfig::new(2, 3).with_bias(false).init(init.device());
        Self { proj, recorders: OutputRecorders::default() }
    }

    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.proj.forward(x)
    }
}

#[derive(Module, Debug)]
pub struct KeepsTower {
    original: Slot<TowerModel>,
}

#[replaces(TowerModel)]
impl KeepsTower {
    pub fn new(init: &Init) -> Self {
        Self { original: TowerModel::slot(init) }
    }

    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.original.forward(x)
    }
}

#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant, reason = "there are few")]
pub enum Tower {
    Plain(TowerModel),
    Held(Slot<TowerModel>),
}

#[derive(Module, Debug)]
struct TowersModel {
    tower: Tower,
    lin: Linear,
    #[module(skip)]
    config: BagConfig,
}

impl TowersModel {
    fn with(tower: Tower) -> Self {
        let lin = LinearConfig::new(2, 3).with_bias(false).init(&Device::flex());
        Self { tower, lin, config: BagConfig::new(&[]) }
    }
}

impl PreTrainedModel for TowersModel {
    type Config = BagConfig;
    const CLASS_NAME: &'static str = "TowersModel";
    const BASE_MODEL_PREFIX: &'static str = "model";

    fn new(_: &BagConfig, init: &Init) -> Self {
        Self::with(Tower::Held(TowerModel::slot(init)))
    }

    fn config(&self) -> &BagConfig {
        &self.config
    }
}

#[test]
fn rules_for_a_base_model_find_it_wherever_it_is() {
    register("TowerModel", [WeightRenaming::new("lin", "proj")]).expect("registers");
    // `lin` of the model around is none of the tower's business
    let folder = folder(&[counting("tower.lin.weight", &[3, 2], 0), counting("lin.weight", &[3, 2], 6)]);
    let init = Init::new(&Device::flex());
    let towers: [fn(&Init) -> Tower; 3] = [
        |init| Tower::Plain(TowerModel::new(init)),
        |init| Tower::Held(TowerModel::slot(init)),
        |init| Tower::Held(Slot::of(KeepsTower::new(init))),
    ];
    for (number, tower) in towers.into_iter().enumerate() {
        // by the rules
        let fresh = TowersModel::with(tower(&init));
        assert_eq!(saved(&fresh).into_keys().collect::<Vec<_>>(), ["lin.weight", "tower.lin.weight"], "{number}");
        // and as it was loaded
        let model = fresh.load_weights(folder.path()).unwrap_or_else(|error| panic!("{number}: {error}"));
        let loaded = values(&model).into_iter().find(|(path, _)| path.ends_with("proj.weight")).expect("is there");
        assert_eq!(loaded.1.1, [0.0, 2.0, 4.0, 1.0, 3.0, 5.0], "{number}");
        assert_eq!(saved(&model), tensors(folder.path()), "{number}");
    }
    unregister("TowerModel").expect("is registered");
}
