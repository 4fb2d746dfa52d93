use super::wrapper;
use burn::module::Module;
use burn::tensor::Tensor;
use burn_models::llava::*;
use patching_core::patch::ReplacementClass;
use patching_core::prelude::*;

wrapper!(Projector(LlavaMultiModalProjector), new(config: &LlavaConfig), forward(x: Tensor<3>) -> Tensor<3>);

pub fn wrappers() -> Vec<(&'static str, ReplacementClass)> {
    vec![("LlavaMultiModalProjector", class::<Projector>())]
}
