use crate::support::{Case, bits, device, devices, ids};
use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor};
use burn_models::config::TokenIds;
use burn_models::generation::{GenerationConfig, Step, generate_with};
use burn_models::layers::LayerContext;
use burn_models::layers::experts::{Experts, ExpertsImplementation, ExpertsInterface, eager_experts};
use burn_models::layers::moe::{choose_experts, router_logits};
use burn_models::llama::LlamaForCausalLM;
use burn_models::mixtral::{MixtralConfig, MixtralForCausalLM, MixtralTopKRouter};
use burn_models::qwen2_moe::Qwen2MoeForCausalLM;
use burn_models::routing::{ExpertRouting, RoutingError};
use burn_models::{ForwardError, TextInputs};
use patching_core::patch::PatchSet;
use patching_core::prelude::*;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

const EXPERTS: usize = 4;

fn recording() -> ForwardKwargs {
    ForwardKwargs::new().output("router_indices", true)
}

fn inputs(case: &Case, device: &Device) -> TextInputs {
    TextInputs { labels: None, ..case.inputs(device) }
}

/// A routing of which every token goes to the other experts.
fn other(routing: &ExpertRouting) -> ExpertRouting {
    let moved: Vec<u8> = routing.to_array::<u8>().expect("fits").iter().map(|expert| (expert + 2) % 4).collect();
    ExpertRouting::from_array(&moved, routing.shape(), EXPERTS).expect("valid")
}

#[test]
fn a_token_may_have_an_expert_twice() {
    // rows that an engine filled with zeros
    for (on, device) in devices() {
        let case = Case::new("qwen2_moe-norm");
        let mut model: Qwen2MoeForCausalLM = case.load(&device);
        let routing = ExpertRouting::from_array(&[0_u16; 20 * 2 * 2], [20, 2, 2], EXPERTS).expect("all are experts");
        let mut logits = Vec::new();
        for implementation in ["eager", "grouped_mm", "batched_mm"] {
            model.set_experts_implementation(implementation).expect("built in");
            let inputs = inputs(&case, &device).expert_routing(routing.clone());
            logits.push(model.forward(inputs, &recording()).expect("runs").logits);
        }
        for other in &logits[1..] {
            assert!(crate::support::difference(&logits[0], other) < 1e-5, "{on}");
        }
    }
}

#[test]
fn its_own_routing_changes_no_bit_and_another_does() {
    for (on, device) in devices() {
        for name in ["qwen2_moe", "qwen2_moe-norm"] {
            let case = Case::new(name);
            let mut model: Qwen2MoeForCausalLM = case.load(&device);
            for implementation in ["grouped_mm", "eager", "batched_mm"] {
                model.set_experts_implementation(implementation).expect("built in");
                let plain = model.forward(inputs(&case, &device), &recording()).expect("runs");
                let routing = ExpertRouting::from_recorded(&plain.router_indices, EXPERTS).expect("recorded");
                let layers = plain.router_indices.len();
                assert_eq!(routing.shape(), [20, layers, 2]);
                let run = |routing: &ExpertRouting| {
                    let inputs = inputs(&case, &device).expert_routing(routing.clone());
                    model.forward(inputs, &recording()).expect("runs")
                };
                let same = run(&routing);
                assert_eq!(bits(&same.logits), bits(&plain.logits), "{name} on {on}, {implementation}");
                let changed = other(&routing);
                let moved = run(&changed);
                assert_ne!(bits(&moved.logits), bits(&plain.logits));
                // what was recorded is what was forced
                assert_eq!(ExpertRouting::from_recorded(&moved.router_indices, EXPERTS).expect("recorded"), changed);
                // and nothing of it stays
                let after = model.forward(inputs(&case, &device), &ForwardKwargs::new()).expect("runs");
                assert_eq!(bits(&after.logits), bits(&plain.logits));
            }
        }
    }
}

/// In parts, with a cache, as in decoding.
#[test]
fn prefill_and_decoding_take_their_parts() {
    let device = device();
    let case = Case::new("mixtral");
    let model: MixtralForCausalLM = case.load(&device);
    let ids = inputs(&case, &device).input_ids.expect("tokens").slice_dim(0, 0..1);
    let [_, seq] = ids.dims();
    let whole = model.forward(ids.clone(), &recording()).expect("runs");
    let routing = other(&ExpertRouting::from_recorded(&whole.router_indices, EXPERTS).expect("recorded"));
    let forced = model.forward(TextInputs::new(ids.clone()).expert_routing(routing.clone()), &recording());
    let forced = forced.expect("runs").logits;
    let mut cache = None;
    for range in [0..seq - 2, seq - 2..seq - 1, seq - 1..seq] {
        let part = routing.slice(range.clone()).expect("there");
        let inputs = TextInputs::new(ids.clone().slice_dim(1, range.clone())).cache(cache).expert_routing(part);
        let output = model.forward(inputs, &ForwardKwargs::new().use_cache(true)).expect("runs");
        let expected = forced.clone().slice_dim(1, range);
        assert!(crate::support::difference(&output.logits, &expected) < 1e-5);
        cache = output.cache;
    }
}

#[test]
fn generation_is_replayed_step_by_step() {
    let device = device();
    let case = Case::new("mixtral");
    let model: MixtralForCausalLM = case.load(&device);
    let run = |inputs: TextInputs, use_cache: bool| {
        let config = GenerationConfig { output_logits: true, use_cache, ..GenerationConfig::greedy(5) };
        model.generate(inputs, &config, &recording()).expect("generates")
    };
    let plain = run(inputs(&case, &device), true);
    let parts: Vec<ExpertRouting> = plain
        .steps
        .iter()
        .map(|step| ExpertRouting::from_recorded(&step.router_indices, EXPERTS).expect("recorded"))
        .collect();
    let routing = ExpertRouting::concat(&parts).expect("alike");
    // two prompts of ten tokens, then four times one token of each
    assert_eq!(routing.shape(), [28, 2, 2]);
    let same = run(inputs(&case, &device).expert_routing(routing.clone()), true);
    assert_eq!(ids(&same.sequences), ids(&plain.sequences));
    for (a, b) in same.steps.iter().zip(&plain.steps) {
        assert_eq!(bits(&a.logits), bits(&b.logits));
    }
    // with another routing, the same with a cache and without
    let moved = other(&routing);
    let cached = run(inputs(&case, &device).expert_routing(moved.clone()), true);
    let whole = run(inputs(&case, &device).expert_routing(moved.clone()), false);
    assert_eq!(ids(&cached.sequences), ids(&whole.sequences));
    assert_ne!(bits(&cached.steps[0].logits), bits(&plain.steps[0].logits));
}

#[test]
fn generation_needs_as_much_routing_as_it_has_steps() {
    let device = device();
    let case = Case::new("mixtral");
    let model: MixtralForCausalLM = case.load(&device);
    let routing = |tokens: usize| {
        let experts = [3_u8, 2, 2, 1].repeat(tokens);
        ExpertRouting::from_array(&experts, [tokens, 2, 2], EXPERTS).expect("valid")
    };
    let endless = GenerationConfig::greedy(5);
    // a token that there is, but that is not chosen
    let may_end = GenerationConfig { eos_token_id: Some(TokenIds::One(1)), pad_token_id: Some(0), ..endless.clone() };
    let run = |tokens: usize, config: &GenerationConfig, callback: bool| {
        let inputs = inputs(&case, &device).expert_routing(routing(tokens));
        let steps = std::cell::Cell::new(0);
        let counted = |_: Step<'_, _>| {
            steps.set(steps.get() + 1);
            ControlFlow::Continue(())
        };
        let kwargs = recording();
        let output = match callback {
            true => generate_with(&model, inputs, config, &kwargs, counted),
            false => model.generate(inputs, config, &kwargs),
        };
        (output.map(|output| output.steps.len()).map_err(|error| error.to_string()), steps.get())
    };
    let short = |len: usize, wanted: usize| Err(format!("the routing has {len} tokens, {wanted} were wanted"));
    // two prompts of ten tokens, then four times one token of each
    for (config, callback) in [(&endless, false), (&endless, true), (&may_end, false), (&may_end, true)] {
        let wanted = if config == &endless && !callback { 28 } else { 20 };
        assert_eq!(run(19, config, callback), (short(19, wanted), 0), "before the first step");
        assert_eq!(run(28, config, callback).0, Ok(5));
        assert_eq!(run(40, config, callback).0, Ok(5), "what is too much is not used");
    }
    assert_eq!(run(27, &endless, false).0, short(27, 28), "nothing ends it before");
    assert_eq!(run(21, &endless, false).0, short(21, 28));
    assert_eq!(run(21, &may_end, false).0, short(21, 22), "the step that it does not reach");
    assert_eq!(run(24, &endless, true), (short(24, 25), 3));
    assert_eq!(run(0, &GenerationConfig::greedy(0), false).0, short(0, 20));
}

#[test]
fn what_does_not_fit_is_an_error_before_the_run() {
    let device = device();
    let case = Case::new("qwen2_moe");
    let model: Qwen2MoeForCausalLM = case.load(&device);
    let run = |shape: [usize; 3], num_experts: usize| {
        let count = shape.iter().product::<usize>();
        let values: Vec<i32> = (0..count).map(|at| (at % num_experts) as i32).collect();
        let routing = ExpertRouting::from_array(&values, shape, num_experts).expect("valid");
        let output = model.forward(inputs(&case, &device).expert_routing(routing), &ForwardKwargs::new());
        match output.map(drop) {
            Err(ForwardError::Routing(error)) => error,
            other => panic!("{other:?}"),
        }
    };
    let mismatch = |what, found, expected| RoutingError::Mismatch { what, found, expected };
    assert_eq!(run([20, 4, 2], 4), mismatch("sparse layers", 4, 3));
    assert_eq!(run([20, 3, 1], 4), mismatch("experts for each token", 1, 2));
    assert_eq!(run([19, 3, 2], 4), mismatch("tokens", 19, 20));
    assert!(matches!(run([20, 3, 2], 5), RoutingError::OutOfRange { found: 4, num_experts: 4, .. }));

    let llama: LlamaForCausalLM = Case::new("llama").load(&device);
    let routing = ExpertRouting::from_array(&[0_u8, 1], [1, 1, 2], 4).expect("valid");
    let ids = Tensor::<2, Int>::from_data([[5]], &device);
    let error = llama.forward(TextInputs::new(ids).expert_routing(routing), &ForwardKwargs::new());
    assert!(matches!(error, Err(ForwardError::Routing(RoutingError::NoExperts { .. }))));

    let recorded = model.forward(inputs(&case, &device), &ForwardKwargs::new().output("router_indices", [0]));
    let recorded = recorded.expect("runs").router_indices;
    let error = ExpertRouting::from_recorded(&recorded, EXPERTS);
    assert_eq!(error, Err(RoutingError::NotRecorded { present: 1, expected: 3 }));
}

/// Different routings on one model at the same time.
#[test]
fn threads_do_not_mix() {
    let device = device();
    let case = Case::new("qwen2_moe-norm");
    let model: Qwen2MoeForCausalLM = case.load(&device);
    let plain = model.forward(inputs(&case, &device), &recording()).expect("runs");
    let own = ExpertRouting::from_recorded(&plain.router_indices, EXPERTS).expect("recorded");
    let routings = [None, Some(own.clone()), Some(other(&own))];
    let run = |routing: &Option<ExpertRouting>| {
        let inputs = inputs(&case, &device).expert_routing(routing.clone());
        bits(&model.forward(inputs, &ForwardKwargs::new()).expect("runs").logits)
    };
    let expected: Vec<Vec<u32>> = routings.iter().map(run).collect();
    assert_ne!(expected[0], expected[2]);
    std::thread::scope(|threads| {
        for thread in 0..4 {
            let (routings, expected, run) = (&routings, &expected, &run);
            threads.spawn(move || {
                for round in 0..12 {
                    let at = (round + thread) % routings.len();
                    assert_eq!(run(&routings[at]), expected[at]);
                }
            });
        }
    });
}

/// A router that decides by itself, whatever it is told; or asks and decides by itself all the same.
#[derive(Module, Debug)]
struct StubbornRouter {
    weight: Param<Tensor<2>>,
    #[module(skip)]
    layer_idx: usize,
}

#[replaces(MixtralTopKRouter)]
impl StubbornRouter {
    fn new(config: &MixtralConfig, layer_idx: usize, init: &Init) -> Self {
        let weight = Tensor::zeros([config.num_local_experts, config.hidden_size], init.device());
        Self { weight: Param::from_tensor(weight), layer_idx }
    }

    fn forward(&self, hidden_states: Tensor<2>, context: &mut LayerContext) -> (Tensor<2>, Tensor<2>, Tensor<2, Int>) {
        if self.layer_idx == 1 {
            let _ = context.forced_experts(self.layer_idx, &hidden_states.device());
        } else if self.layer_idx == 0 && hidden_states.dims()[0] == 1 {
            // a single token is left to the check of what was given
            let forced = context.forced_experts(self.layer_idx, &hidden_states.device());
            let logits = router_logits(self.weight.val(), hidden_states);
            let (scores, indices) = choose_experts(logits.clone(), 2, true, forced);
            return (logits, scores, indices);
        }
        let logits = router_logits(self.weight.val(), hidden_states);
        let (scores, indices) = choose_experts(logits.clone(), 2, true, None);
        (logits, scores, indices)
    }
}

#[test]
fn a_router_that_does_not_obey_is_an_error_after_the_run() {
    let device = device();
    let case = Case::new("mixtral");
    let plain: MixtralForCausalLM = case.load(&device);
    let patches = PatchSet::new([("MixtralTopKRouter", class::<StubbornRouter>())]).expect("valid");
    let model = MixtralForCausalLM::new(plain.config(), &patches.init(&device));
    let run = |model: &MixtralForCausalLM, tokens: usize, experts: [u8; 4]| {
        let ids = Tensor::<1, Int>::arange(5..5 + tokens as i64, &device).unsqueeze::<2>();
        let routing = ExpertRouting::from_array(&experts.repeat(tokens), [tokens, 2, 2], EXPERTS).expect("valid");
        match model.forward(TextInputs::new(ids).expert_routing(routing), &ForwardKwargs::new()).map(drop) {
            Err(ForwardError::Routing(error)) => Some(error),
            Ok(()) => None,
            Err(other) => panic!("{other}"),
        }
    };
    let ignored = |layer| Some(RoutingError::Ignored { layer });
    // one did not ask, one asked and did otherwise, one did not ask and chose the same by chance
    assert_eq!(run(&model, 3, [3, 2, 2, 1]), ignored(0));
    assert_eq!(run(&model, 1, [3, 2, 2, 1]), ignored(1));
    assert_eq!(run(&model, 3, [0, 1, 0, 1]), ignored(0));
    assert_eq!(run(&model, 1, [3, 2, 0, 1]), None);
    assert_eq!(run(&plain, 3, [3, 2, 2, 1]), None);
    // without a routing they may do as they like
    let ids = Tensor::<2, Int>::from_data([[5, 6, 7]], &device);
    assert!(model.forward(ids, &ForwardKwargs::new()).is_ok());
}

#[test]
fn a_panic_or_an_error_leaves_nothing() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let failing = |inputs: Experts| {
        assert!(CALLS.fetch_add(1, Ordering::SeqCst) != 1, "the second call fails");
        eager_experts(inputs)
    };
    ExpertsInterface::register("failing", ExpertsImplementation::new(failing), false).expect("a new name");
    let device = device();
    let case = Case::new("qwen2_moe");
    let mut model: Qwen2MoeForCausalLM = case.load(&device);
    let run = |model: &Qwen2MoeForCausalLM, routing: Option<ExpertRouting>| {
        model.forward(inputs(&case, &device).expert_routing(routing), &recording())
    };
    let plain = run(&model, None).expect("runs");
    let own = ExpertRouting::from_recorded(&plain.router_indices, EXPERTS).expect("recorded");
    model.set_experts_implementation("failing").expect("registered");
    let panicked = catch_unwind(AssertUnwindSafe(|| run(&model, Some(other(&own))).map(drop)));
    assert!(panicked.is_err());
    assert!(run(&model, Some(own.slice(0..3).expect("there"))).is_err());
    model.set_experts_implementation("grouped_mm").expect("built in");
    let after = run(&model, None).expect("runs");
    assert_eq!(bits(&after.logits), bits(&plain.logits));
    assert_eq!(ExpertRouting::from_recorded(&after.router_indices, EXPERTS).expect("recorded"), own);
}

/// Also where the run stops once the first layer's experts are recorded.
#[test]
fn early_exit_records_what_is_forced() {
    let device = device();
    let case = Case::new("qwen2_moe");
    let model: Qwen2MoeForCausalLM = case.load(&device);
    let plain = model.forward(inputs(&case, &device), &recording()).expect("runs");
    let moved = other(&ExpertRouting::from_recorded(&plain.router_indices, EXPERTS).expect("recorded"));
    let kwargs = ForwardKwargs::new().output("router_indices", [0]);
    let mut captures =
        model.model.forward_captures(inputs(&case, &device).expert_routing(moved.clone()), &kwargs).expect("runs");
    let indices = captures.take::<Tensor<2, Int>>("router_indices").expect("asked for");
    let found: Vec<i64> = indices.at(0).expect("recorded").to_data().iter::<i64>().collect();
    let expected: Vec<i64> = moved.to_array().expect("fits");
    let expected: Vec<i64> = expected.chunks(6).flat_map(|token| token[..2].to_vec()).collect();
    assert_eq!(found, expected);
}

/// A run that stops has checked the layers that ran, and only those.
#[test]
fn early_exit_checks_what_ran() {
    let device = device();
    let case = Case::new("mixtral");
    let config = case.load::<MixtralForCausalLM>(&device).config().clone();
    let patches = PatchSet::new([("MixtralTopKRouter", class::<StubbornRouter>())]).expect("valid");
    let model = MixtralForCausalLM::new(&config, &patches.init(&device));
    let run = |tokens: usize, experts: [u8; 4], kwargs: ForwardKwargs| {
        let ids = Tensor::<1, Int>::arange(5..5 + tokens as i64, &device).unsqueeze::<2>();
        let routing = ExpertRouting::from_array(&experts.repeat(tokens), [tokens, 2, 2], EXPERTS).expect("valid");
        match model.model.forward_captures(TextInputs::new(ids).expert_routing(routing), &kwargs).map(drop) {
            Err(ForwardError::Routing(error)) => Some(error),
            Ok(()) => None,
            Err(other) => panic!("{other}"),
        }
    };
    let ignored = |layer| Some(RoutingError::Ignored { layer });
    for key in ["router_logits", "router_indices", "attentions"] {
        let wanted = |layer: isize| ForwardKwargs::new().output(key, [layer]);
        // of a single token layer 0 obeys and layer 1 does not; of several neither does
        assert_eq!(run(1, [3, 2, 2, 1], wanted(0)), None, "{key}");
        assert_eq!(run(1, [3, 2, 2, 1], wanted(1)), ignored(1), "{key}");
        assert_eq!(run(3, [3, 2, 2, 1], wanted(0)), ignored(0), "{key}");
    }
}

/// A decoder of one's own, out of a family's parts: what ends its context is what checks its routers.
#[test]
fn a_decoder_of_ones_own_checks_its_routers() {
    let device = device();
    let plain: MixtralForCausalLM = Case::new("mixtral").load(&device);
    let patches = PatchSet::new([("MixtralTopKRouter", class::<StubbornRouter>())]).expect("valid");
    let stubborn = MixtralForCausalLM::new(plain.config(), &patches.init(&device));
    let run = |model: &MixtralForCausalLM| {
        let ids = Tensor::<2, Int>::from_data([[5, 6, 7]], &device);
        let routing = ExpertRouting::from_array(&[3_u8, 2, 2, 1].repeat(3), [3, 2, 2], EXPERTS).expect("valid");
        let (inputs, kwargs) = (TextInputs::new(ids).expert_routing(routing), ForwardKwargs::new());
        let base = &model.model;
        let (mut x, mut context) =
            LayerContext::for_decoder(model.config(), &base.embed_tokens, inputs, &kwargs).expect("fits");
        context.set_rotary(base.rotary_emb.forward(context.position_ids(), x.dtype()));
        for layer in &base.layers {
            x = layer.forward(x, &mut context);
        }
        context.finish().map(|cache| cache.map(|cache| cache.sequence_length()))
    };
    assert_eq!(run(&plain), Ok(Some(3)));
    assert_eq!(run(&stubborn), Err(RoutingError::Ignored { layer: 0 }));
}
