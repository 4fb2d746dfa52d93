//! What Burn does with modules works after a capture as before it.

use crate::model::*;
use burn::module::{Module, ModuleVisitor, Param};
use burn::prelude::*;
use patching_core::prelude::*;

fn captured(model: &ToyModel) -> Vec<u32> {
    let output = model
        .forward(input(), &with_memory(), &ForwardKwargs::new().output_hidden_states(true).output_attentions(true))
        .expect("runs");
    assert_eq!((output.hidden_states.iter().count(), output.attentions.iter().count()), (4, 3));
    bits(&output.last_hidden_state)
}

#[test]
fn a_clone_records_for_itself() {
    let model = ToyModel::tiny();
    let before = captured(&model);
    let copy = model.clone();
    assert_eq!(captured(&copy), before);
    drop(model);
    assert_eq!(captured(&copy), before);
}

#[test]
fn a_record_restores_the_model() {
    let model = ToyModel::tiny();
    let before = captured(&model);
    let restored = ToyModel::tiny().load_record(model.into_record());
    assert_eq!(captured(&restored), before);
}

#[test]
fn parameter_paths_have_no_segment_for_slots() {
    #[derive(Default)]
    struct Paths {
        path: Vec<String>,
        seen: Vec<String>,
    }
    impl ModuleVisitor for Paths {
        fn enter_module(&mut self, name: &str, _: &str) {
            self.path.push(name.to_owned());
        }
        fn exit_module(&mut self, _: &str, _: &str) {
            self.path.pop();
        }
        fn visit_float<const D: usize>(&mut self, _: &Param<Tensor<D>>) {
            self.seen.push(self.path.join("."));
        }
    }
    let mut paths = Paths::default();
    ToyModel::tiny().visit(&mut paths);
    assert_eq!(paths.seen.len(), ToyModel::tiny().layers.len() * 5 + 1);
    assert_eq!(
        paths.seen[..3],
        ["layers.0.self_attn.proj.weight", "layers.0.self_attn.proj.bias", "layers.0.crossattention.proj.weight"]
    );
    assert_eq!(paths.path.len(), 0);
}

#[test]
fn parameters_devices_and_display_reach_through_slots() {
    let model = ToyModel::tiny();
    captured(&model);
    assert_eq!(model.num_params(), 3 * (2 * 20 + 4) + 4);
    assert_eq!(model.devices().len(), 1);
    let shown = model.to_string();
    assert!(shown.contains("self_attn: ToyAttention") && shown.contains("recorders: as declared"), "{shown}");
    captured(&model.to_device(&device()));
}

#[test]
fn quantised_weights_are_still_recorded() {
    use burn::module::Quantizer;
    use burn::tensor::quantization::{Calibration, QuantScheme};
    let model = ToyModel::tiny();
    captured(&model);
    let mut quantizer = Quantizer::new(Calibration::MinMax, QuantScheme::default());
    captured(&model.quantize_weights(&mut quantizer));
}

#[cfg(feature = "autodiff")]
mod training {
    use super::*;
    use burn::module::Lora;

    fn training() -> ToyModel {
        ToyModel::new(&ToyConfig::tiny(), &Init::new(&device().autodiff())).train()
    }

    #[test]
    fn recorded_values_stay_on_the_graph_unless_detached() {
        let model = training();
        let input = input().to_device(&device().autodiff());
        let kwargs = ForwardKwargs::new().output_hidden_states(1);
        let weight = |model: &ToyModel| {
            let block = model.layers[0].implementation::<ToyBlock>().expect("a ToyBlock").clone();
            block.scale()
        };
        let output = model.forward(input.clone(), &with_memory_on(&device().autodiff()), &kwargs).expect("runs");
        let gradients = output.hidden_states.at(1).expect("kept").clone().sum().backward();
        assert!(weight(&model).grad(&gradients).is_some());
        let detached = model.forward(input, &with_memory_on(&device().autodiff()), &kwargs.detach(true)).expect("runs");
        assert!(!detached.hidden_states.at(1).expect("kept").is_require_grad());
    }

    #[test]
    fn low_rank_adapters_and_the_inner_model_record() {
        let model = training();
        let on = ForwardKwargs::new().output_hidden_states(true).output_attentions(true);
        let there = input().to_device(&device().autodiff());
        model.forward(there.clone(), &with_memory_on(&device().autodiff()), &on).expect("runs");
        let adapted = model.apply_lora(Lora::new(2, 4.0));
        assert_eq!(
            adapted.forward(there, &with_memory_on(&device().autodiff()), &on).expect("runs").hidden_states.len(),
            4
        );
        captured(&adapted.valid());
    }
}
