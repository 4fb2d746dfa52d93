//! Which experts served each token, recorded in one pass and forced in another, with gradients: as a rollout and the
//! training step after it need it. Once with the library's own means, and once as a recipe of one's own, with a
//! router that takes the place of the model's.
//!
//! `cargo run --example routing_replay --features autodiff`

use burn::prelude::*;
use burn::tensor::activation::softmax;
use burnlens::burn_models::TextInputs;
use burnlens::burn_models::layers::LayerContext;
use burnlens::burn_models::qwen2_moe::{Qwen2MoeConfig, Qwen2MoeForCausalLM, Qwen2MoeTopKRouter};
use burnlens::burn_models::routing::ExpertRouting;
use burnlens::patching_core::class::slots;
use burnlens::patching_core::patch::PatchSet;
use burnlens::patching_core::weights::LoadOptions;
use burnlens::prelude::*;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/burn-models/tests/fixtures/qwen2_moe/fused");

fn tokens(device: &Device) -> Tensor<2, Int> {
    Tensor::from_data([[1_i64, 5, 9, 13, 17]], device)
}

/// The gradient that reaches the weight of a router, as the sum of its squares.
fn router_gradient(loss: Tensor<1>, weight: &Tensor<2>) -> Option<f32> {
    let gradients = loss.backward();
    weight.grad(&gradients).map(|gradient| gradient.powi_scalar(2).sum().into_scalar::<f32>())
}

fn loss(logits: Tensor<3>) -> Tensor<1> {
    logits.powi_scalar(2).mean()
}

/// With the library: routing travels with the inputs of one call, so there is nothing to clean up.
fn by_the_library(device: &Device) -> Result<(), Box<dyn Error>> {
    let model = Qwen2MoeForCausalLM::from_pretrained(FOLDER, device)?;
    let experts = model.config().num_experts;

    // a rollout: sampled elsewhere or here, with the indices recorded
    let output = model.forward(tokens(device), &ForwardKwargs::new().output("router_indices", true))?;
    let routing = ExpertRouting::from_recorded(&output.router_indices, experts)?;
    println!("routing [tokens, sparse layers, top k] {:?}", routing.shape());
    // the layout in which serving engines hand it over
    let bytes: Vec<u8> = routing.to_array()?;
    let received = ExpertRouting::from_array(&bytes, routing.shape(), experts)?;
    assert_eq!(received, routing);

    // the training step: the same experts, scores from the live router
    let replayed = model.forward(TextInputs::new(tokens(device)).expert_routing(received), &ForwardKwargs::new())?;
    assert_eq!(replayed.logits.clone().inner().into_data(), output.logits.inner().into_data());

    // other experts, to see that it matters
    let other: Vec<u8> = bytes.iter().map(|expert| (expert + 1) % experts as u8).collect();
    let other = ExpertRouting::from_array(&other, routing.shape(), experts)?;
    let forced = model.forward(TextInputs::new(tokens(device)).expert_routing(other), &ForwardKwargs::new())?;
    let difference = (forced.logits.clone() - replayed.logits).abs().max().into_scalar::<f32>();
    println!("with other experts the logits differ by up to {difference:.4}");
    assert!(difference > 1e-4);

    let (_, router) = slots::<Qwen2MoeTopKRouter, _>(&model).swap_remove(0);
    let weight = router.implementation::<Qwen2MoeTopKRouter>().ok_or("the original router")?.weight.val();
    let gradient = router_gradient(loss(forced.logits), &weight).ok_or("no gradient")?;
    println!("squared gradient of the first router: {gradient:e}");
    assert!(gradient > 0.0);

    // what does not fit is an error before anything runs
    let short = routing.slice(0..2)?;
    let error = model.forward(TextInputs::new(tokens(device)).expert_routing(short), &ForwardKwargs::new());
    println!("{}", error.map(|_| ()).err().ok_or("a routing of other tokens was taken")?);
    Ok(())
}

/// The experts that a router is forced to, `[tokens, top k]`, while a guard of [`force`] lives.
#[derive(Clone, Debug, Default)]
struct Forced(Arc<Mutex<Option<Tensor<2, Int>>>>);

impl Forced {
    fn set(&self, indices: Option<Tensor<2, Int>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = indices;
    }

    fn get(&self) -> Option<Tensor<2, Int>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The recipe: a router that does as the original, unless it is forced.
#[derive(Module, Debug)]
pub struct ReplayRouter {
    original: Slot<Qwen2MoeTopKRouter>,
    #[module(skip)]
    norm_topk_prob: bool,
    #[module(skip)]
    forced: Forced,
}

#[replaces(Qwen2MoeTopKRouter)]
impl ReplayRouter {
    pub fn new(config: &Qwen2MoeConfig, layer_idx: usize, init: &Init) -> Self {
        Self {
            original: Qwen2MoeTopKRouter::slot(config, layer_idx, init),
            norm_topk_prob: config.norm_topk_prob,
            forced: Forced::default(),
        }
    }

    pub fn forward(
        &self,
        hidden_states: Tensor<2>,
        context: &mut LayerContext,
    ) -> (Tensor<2>, Tensor<2>, Tensor<2, Int>) {
        let (logits, scores, indices) = self.original.forward(hidden_states, context);
        let Some(forced) = self.forced.get() else { return (logits, scores, indices) };
        // the live router's probabilities at the forced experts, so that gradients flow into it
        let scores = softmax(logits.clone(), 1).gather(1, forced.clone());
        let scores = if self.norm_topk_prob { scores.clone() / scores.sum_dim(1) } else { scores };
        (logits, scores, forced)
    }
}

/// Forces each router to one of `indices` until it is dropped, whatever happens until then.
struct Guard(Vec<Forced>);

fn force(model: &Qwen2MoeForCausalLM, indices: Vec<Tensor<2, Int>>) -> Result<Guard, Box<dyn Error>> {
    let routers = slots::<Qwen2MoeTopKRouter, _>(model);
    if routers.len() != indices.len() {
        return Err(format!("{} routers, but indices for {}", routers.len(), indices.len()).into());
    }
    let mut guard = Guard(Vec::new());
    for ((path, router), indices) in routers.iter().zip(indices) {
        let router = router.implementation::<ReplayRouter>().ok_or(format!("`{path}` is not replaced"))?;
        router.forced.set(Some(indices));
        guard.0.push(router.forced.clone());
    }
    Ok(guard)
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.iter().for_each(|forced| forced.set(None));
    }
}

/// With a replacement of one's own: what the library did not foresee can be done in the same way.
fn by_a_recipe(device: &Device) -> Result<(), Box<dyn Error>> {
    let patches = PatchSet::new([("TopKRouter$", class::<ReplayRouter>())])?;
    let options = LoadOptions::new().patches(patches);
    let (model, report) = Qwen2MoeForCausalLM::from_pretrained_with(FOLDER, device, &options)?;
    println!("{}", report.patches);

    // the recorders follow the replacement
    let record = ForwardKwargs::new().output("router_indices", true);
    let output = model.forward(tokens(device), &record)?;
    let indices: Vec<_> = output.router_indices.iter().map(|(_, _, indices)| indices.clone()).collect();
    let other = indices.iter().map(|indices| (indices.clone() + 1).remainder_scalar(4)).collect();

    let forced = {
        let _guard = force(&model, other)?;
        model.forward(tokens(device), &record)?
    };
    let difference = (forced.logits.clone() - output.logits.clone()).abs().max().into_scalar::<f32>();
    println!("with other experts the logits differ by up to {difference:.4}");
    assert!(difference > 1e-4);

    let replayed = {
        let _guard = force(&model, indices)?;
        model.forward(tokens(device), &record)?
    };
    let same =
        |one: &Tensor<3>, other: &Tensor<3>| (one.clone() - other.clone()).abs().max().into_scalar::<f32>() < 1e-6;
    assert!(same(&replayed.logits, &output.logits));
    // the guard is gone
    assert!(same(&model.forward(tokens(device), &record)?.logits, &output.logits));

    let (_, router) = slots::<Qwen2MoeTopKRouter, _>(&model).swap_remove(0);
    let original = &router.implementation::<ReplayRouter>().ok_or("the replacement")?.original;
    let weight = original.implementation::<Qwen2MoeTopKRouter>().ok_or("the original router")?.weight.val();
    let gradient = router_gradient(loss(forced.logits), &weight).ok_or("no gradient")?;
    println!("squared gradient of the first router: {gradient:e}");
    assert!(gradient > 0.0);
    Ok(())
}

pub fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::flex().autodiff();
    println!("-- by the library");
    by_the_library(&device)?;
    println!("-- by a recipe");
    by_a_recipe(&device)
}
