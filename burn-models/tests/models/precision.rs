use crate::support::{device, difference, for_each_decoder};
use burn::tensor::{DType, FloatDType};
use burn_models::models::CausalLM;
use patching_core::prelude::*;
use patching_core::weights::LoadOptions;

/// Narrow types give about the same, with and without recording, and every recorded value has the model's type.
#[test]
fn models_compute_in_the_type_of_their_weights() {
    let device = device();
    for (dtype, stored, tolerance) in [(FloatDType::BF16, DType::BF16, 0.1), (FloatDType::F16, DType::F16, 0.02)] {
        for_each_decoder!(case, Model => {
            if case.name.ends_with("-gradients") {
                continue; // in a narrow type a router there chooses other experts
            }
            let wide: Model = case.load(&device);
            let expected = wide.forward_causal(case.inputs(&device), &ForwardKwargs::new()).expect("runs").logits;
            let options = LoadOptions::new().dtype(dtype);
            let (model, _) = Model::from_pretrained_with(case.checkpoint(), &device, &options).expect("loads");
            for kwargs in [
                ForwardKwargs::new(),
                ForwardKwargs::new().output_hidden_states(true).output_attentions([0]),
            ] {
                let output = model.forward_causal(case.inputs(&device), &kwargs).expect("runs");
                assert_eq!(output.logits.dtype(), stored);
                assert!(output.hidden_states.iter().all(|(_, _, state)| state.dtype() == stored));
                assert!(output.attentions.iter().all(|(_, _, weights)| weights.dtype() == stored));
                let far = difference(&output.logits.cast(DType::F32), &expected);
                assert!(far < tolerance, "{} in {stored:?}: {far}", case.name);
            }
        });
    }
}
