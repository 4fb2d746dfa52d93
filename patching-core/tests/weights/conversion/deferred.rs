//! Parameters that are put together of several tensors are so when they are first used.

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::nn::LinearConfig;
use burn::tensor::{Device, Tensor};
use patching_core::prelude::*;
use patching_core::weights::{Concatenate, LoadOptions, ReadMode, WeightTransform};

use super::bag::{Stored, counting, folder, mapping};
use crate::support::{ToyConfig, tensors, values};

/// A model as models are: its parameters are made when they are first used.
#[derive(Module, Debug)]
struct Fused {
    qkv: burn::nn::Linear,
    experts: Param<Tensor<2>>,
    #[module(skip)]
    config: ToyConfig,
    recorders: OutputRecorders,
}

impl PreTrainedModel for Fused {
    type Config = ToyConfig;
    const CLASS_NAME: &'static str = "Fused";
    const BASE_MODEL_PREFIX: &'static str = "model";

    fn new(config: &ToyConfig, init: &Init) -> Self {
        let zeros = |device: &Device, _: bool| Tensor::zeros([4, 3], device);
        Self {
            qkv: LinearConfig::new(3, 4).with_bias(false).init(init.device()),
            experts: Param::uninitialized(ParamId::new(), zeros, init.device().clone(), true, [4, 3].into()),
            config: config.clone(),
            recorders: OutputRecorders::default(),
        }
    }

    fn config(&self) -> &ToyConfig {
        &self.config
    }
}

fn stored() -> Vec<Stored> {
    let parts = |name: &str, first: usize| {
        [counting(&format!("{name}.a"), &[1, 3], first), counting(&format!("{name}.b"), &[3, 3], first + 3)]
    };
    let mut all = parts("experts", 1).to_vec();
    all.extend([counting("q.weight", &[1, 3], 50), counting("k.weight", &[3, 3], 60)]);
    all
}

fn options() -> LoadOptions {
    let rule = |sources: [&str; 2], target: &str| {
        WeightTransform::from(WeightConverter::new(sources, target).with(Concatenate::dim(0)))
    };
    LoadOptions::new().conversions(mapping(vec![rule(["experts.a", "experts.b"], "experts"), rule(["q", "k"], "qkv")]))
}

fn model() -> Fused {
    Fused::new(&ToyConfig::small(), &Init::new(&Device::flex()))
}

/// Whether each parameter is made, by its path.
fn made<M: Module>(model: &M) -> Vec<(String, bool)> {
    #[derive(Default)]
    struct Made(Vec<String>, Vec<(String, bool)>);
    impl ModuleVisitor for Made {
        fn enter_module(&mut self, name: &str, _: &str) {
            self.0.push(name.to_owned());
        }
        fn exit_module(&mut self, _: &str, _: &str) {
            self.0.pop();
        }
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.1.push((self.0.join("."), param.is_initialized()));
        }
    }
    let mut all = Made::default();
    model.visit(&mut all);
    all.1
}

#[test]
fn they_are_made_when_they_are_used_and_not_before() {
    let folder = folder(&stored());
    let expected = tensors(folder.path());
    let (loaded, report) = model().load_weights_with(folder.path(), &options()).expect("loads");
    assert_eq!(report.converted.len(), 2);
    assert_eq!(made(&loaded), [("qkv.weight".to_owned(), false), ("experts".to_owned(), false)]);
    let copy = loaded.clone();
    // whoever deletes the files does not take them away from the model
    std::fs::remove_file(folder.path().join("model.safetensors")).expect("is there");

    assert_eq!(values(&loaded)["experts"].1, (1..=12).map(|value| value as f32).collect::<Vec<_>>());
    assert_eq!(loaded.qkv.weight.val().dims(), [3, 4]);
    // a copy has the same values, made once
    assert!(made(&copy).iter().all(|(_, made)| *made));

    let back = tempfile::tempdir().expect("a folder");
    loaded.save_pretrained(back.path()).expect("saves");
    assert_eq!(tensors(back.path()), expected);
}

#[test]
fn saving_makes_what_was_not_used() {
    let folder = folder(&stored());
    let (loaded, _) = model().load_weights_with(folder.path(), &options()).expect("loads");
    loaded.save_pretrained(folder.path()).expect("saves over what it was loaded from");
    let again = tempfile::tempdir().expect("a folder");
    loaded.save_pretrained(again.path()).expect("saves");
    assert_eq!(tensors(again.path()), tensors(folder.path()));
}

#[test]
fn files_that_are_read_are_read_at_once() {
    let folder = folder(&stored());
    let (loaded, _) = model().load_weights_with(folder.path(), &options().read_mode(ReadMode::Read)).expect("loads");
    assert!(made(&loaded).iter().all(|(_, made)| *made));
}

#[test]
fn another_device_and_another_type() {
    let folder = folder(&stored());
    let (loaded, _) = model().load_weights_with(folder.path(), &options()).expect("loads");
    let moved = loaded.to_device(&crate::support::ndarray());
    assert_eq!(values(&moved)["experts"].1[11], 12.0);
    let half = options().dtype(burn::tensor::FloatDType::F16);
    let (loaded, report) = model().load_weights_with(folder.path(), &half).expect("loads");
    assert_eq!(report.casts.len(), 2);
    // what may fail is done at once
    assert!(made(&loaded).iter().all(|(_, made)| *made));
}

#[test]
fn many_threads_use_a_parameter_for_the_first_time() {
    let folder = folder(&stored());
    let (loaded, _) = model().load_weights_with(folder.path(), &options()).expect("loads");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(values(&loaded)["experts"].1.len(), 12));
        }
    });
}

#[cfg(feature = "autodiff")]
mod trained {
    use super::*;

    #[test]
    fn frozen_parameters_stay_frozen_and_others_are_trained() {
        let folder = folder(&stored());
        let is_trained = |model: Fused| {
            let (loaded, _) = model.load_weights_with(folder.path(), &options()).expect("loads");
            loaded.train().experts.val().is_require_grad()
        };
        assert!(is_trained(model()));
        let mut frozen = model();
        frozen.experts = frozen.experts.set_require_grad(false);
        assert!(!is_trained(frozen));
        let on_a_graph = Fused::new(&ToyConfig::small(), &Init::new(&Device::flex().autodiff()));
        let (loaded, _) = on_a_graph.load_weights_with(folder.path(), &options()).expect("loads");
        assert!(loaded.experts.val().is_require_grad());
    }
}
