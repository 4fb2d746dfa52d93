//! Slots leave no trace in a checkpoint.

use burn::nn::{Linear, LinearConfig};
use burn::tensor::Device;
use patching_core::prelude::*;
use patching_core::weights::LoadOptions;

use crate::support::{ToyConfig, tensors, values};

#[derive(burn::module::Module, Debug)]
pub struct SlotMlp {
    up_proj: Linear,
}

#[module_class]
impl SlotMlp {
    pub fn new(config: &ToyConfig, init: &Init) -> Self {
        Self { up_proj: LinearConfig::new(config.hidden_size, 3).init(init.device()) }
    }

    pub fn forward(&self, hidden_states: burn::tensor::Tensor<2>) -> burn::tensor::Tensor<2> {
        self.up_proj.forward(hidden_states)
    }
}

#[derive(burn::module::Module, Debug)]
pub struct SlotModel {
    first: Slot<SlotMlp>,
    layers: Vec<Slot<SlotMlp>>,
    maybe: Option<Slot<SlotMlp>>,
    #[module(skip)]
    config: ToyConfig,
}

impl PreTrainedModel for SlotModel {
    type Config = ToyConfig;
    const CLASS_NAME: &'static str = "SlotModel";
    const BASE_MODEL_PREFIX: &'static str = "model";

    fn new(config: &ToyConfig, init: &Init) -> Self {
        let slot = || SlotMlp::slot(config, init);
        Self { first: slot(), layers: vec![slot(), slot()], maybe: Some(slot()), config: config.clone() }
    }

    fn config(&self) -> &ToyConfig {
        &self.config
    }
}

#[test]
fn keys_and_layouts_go_through_a_slot() {
    let folder = tempfile::tempdir().expect("a folder");
    let device = Device::flex();
    let model = SlotModel::from_config(&ToyConfig::small(), &device).expect("constructs");
    model.save_pretrained(folder.path()).expect("saves");
    let saved: Vec<_> =
        tensors(folder.path()).into_iter().map(|(key, (_, shape, _))| format!("{key} {shape:?}")).collect();
    let expected = ["first", "layers.0", "layers.1", "maybe"]
        .map(|slot| [format!("{slot}.up_proj.bias [3]"), format!("{slot}.up_proj.weight [3, 4]")]);
    assert_eq!(saved, expected.concat());

    let (loaded, report) = SlotModel::from_pretrained_with(folder.path(), &device, &LoadOptions::new()).expect("loads");
    assert!(report.is_exact(), "{report}");
    assert_eq!(report.loaded, 8);
    assert_eq!(values(&loaded), values(&model));
}
