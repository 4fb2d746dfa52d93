//! What the macros generate, run through the root package's own paths.

use burnlens::patching_core::capture;
use burnlens::prelude;

#[path = "crates/model.rs"]
mod model;

use burn::prelude::*;
use burnlens::patching_core::capture::Returned;
use burnlens::prelude::*;
use model::{Config, Depth, Inputs, Model, ModelError, Second};

fn device() -> Device {
    Device::flex()
}

fn config() -> Config {
    Config { width: 4, num_layers: Some(2), ..Config::default() }
}

#[test]
fn arguments_of_every_form_reach_the_body_and_the_request() {
    let (output, six) = model::run(&device());
    assert_eq!(six, 6.0);
    assert_eq!(output.depth, Depth(3 + usize::from(false)), "an explicit argument wins, the config's cache is off");
    assert_eq!(output.hidden_states.len(), 3);
    assert_eq!(
        output.attentions.iter().map(|(at, path, _)| (at, path.to_owned())).collect::<Vec<_>>(),
        [(0, "layers.0.self_attn".to_owned()), (1, "layers.1.self_attn".to_owned())]
    );
    assert_eq!(
        output.names.iter().map(|(at, _, _)| at).collect::<Vec<_>>(),
        [1],
        "a selection as an argument of its own"
    );
}

#[test]
fn what_is_left_out_comes_from_the_config() {
    let config = Config { depth: Some(9), use_cache: true, ..config() };
    let model = Model::new(config, &Init::new(&device()));
    let embeddings = Tensor::<3>::ones([1, 2, 4], &device());
    let none = ForwardKwargs::new();
    let call = |use_cache, depth| {
        let inputs = Inputs { embeddings: &embeddings, _more: 0 };
        model
            .forward(inputs, |_| {}, [], use_cache, depth, None, Flag::Unset, &none, none.clone())
            .map(|output| output.depth)
    };
    assert_eq!(call(None, None).expect("runs"), Depth(10));
    assert_eq!(call(Some(false), Some(1)).expect("runs"), Depth(1));
}

#[test]
fn a_run_for_captures_leaves_at_the_head_of_the_loop() {
    let model = Model::new(config(), &Init::new(&device()));
    let embeddings = Tensor::<3>::ones([1, 2, 4], &device());
    let visited = std::cell::RefCell::new(Vec::new());
    let inputs = Inputs { embeddings: &embeddings, _more: 0 };
    let request = ForwardKwargs::new().output_hidden_states(0);
    let none = ForwardKwargs::new();
    let visit = |n| visited.borrow_mut().push(n);
    let mut captures =
        model.forward_captures(inputs, visit, [5], None, None, None, Flag::Unset, &none, request).expect("complete");
    assert_eq!(captures.take::<Tensor<3>>("hidden_states").expect("recorded").iter().count(), 1);
    // the closure's own loop runs to its end, the loop over `extra` is never reached
    assert_eq!(*visited.borrow(), [1, 2]);
}

#[test]
fn return_dict_is_the_callers_then_the_configs() {
    let embeddings = Tensor::<3>::ones([1, 2, 4], &device());
    let returned = |configured, called| {
        let model = Second::new(Config { return_dict: configured, ..config() }, &Init::new(&device()));
        let kwargs = ForwardKwargs::new().output_hidden_states(true).return_dict(called);
        model.encode_returned(&embeddings, None, None, &kwargs).expect("runs")
    };
    assert!(matches!(returned(None, None), Returned::Struct(_)));
    assert!(matches!(returned(Some(false), Some(true)), Returned::Struct(_)));
    for tuple in [returned(Some(false), None), returned(None, Some(false))] {
        let Returned::Tuple(tuple) = tuple else { panic!("a tuple") };
        assert_eq!(tuple.names().collect::<Vec<_>>(), ["last_hidden_state", "depth", "hidden_states"]);
    }
}

#[test]
fn a_select_strategy_that_does_not_exist_is_an_error() {
    let model = Second::new(config(), &Init::new(&device()));
    let embeddings = Tensor::<3>::ones([1, 2, 4], &device());
    let error =
        model.encode(&embeddings, Some("half".to_owned()), None, &ForwardKwargs::new()).expect_err("no such strategy");
    let ModelError::Capture(error) = error;
    assert_eq!(error.to_string(), "`half` is no select strategy: expected `default` or `full`");
}

#[test]
fn classes_are_known_to_the_program() {
    let known: Vec<_> =
        burnlens::patching_core::class::known_classes().map(|class| (class.name, class.module)).collect();
    for class in [
        ("Attention", "macros::model::private"),
        ("Block", "macros::model"),
        ("Local", "macros::model"),
        ("Written", "macros::model"),
    ] {
        assert!(known.contains(&class), "{class:?} in {known:?}");
    }
}

#[test]
fn a_plan_names_the_slots() {
    let model = Model::new(config(), &Init::new(&device()));
    let plan = model.forward_plan(&ForwardKwargs::new().output_attentions(1)).expect("a plan");
    let kept: Vec<_> = plan
        .keys()
        .iter()
        .flat_map(|key| key.values().filter(|value| value.is_kept).map(|value| value.path.to_owned()))
        .collect();
    assert_eq!(kept, ["layers.1.self_attn"]);
}

/// A family's models, written once: what is handed on comes in groups.
macro_rules! family {
    ($model:ident, $class:path, $key:ident, $index:literal, $place:expr, $initial:expr) => {
        #[derive(Module, Debug, CanRecordOutputs)]
        #[can_record_outputs($key = OutputRecorder(
                                    $class, index = $index, layer_name = $place, capture_initial_hidden_state = $initial
                                ))]
        struct $model {
            blocks: Vec<Slot<model::Block>>,
            #[module(skip)]
            config: Config,
            recorders: OutputRecorders,
        }

        impl $model {
            #[capture_outputs]
            fn forward(&self, x: Tensor<3>, kwargs: &ForwardKwargs) -> Result<FamilyOutput, CaptureError> {
                let x = self.blocks.iter().try_fold(x, |x, block| block.forward(&x))?;
                Ok(FamilyOutput::new(x))
            }
        }
    };
}

#[derive(ModelOutput, Clone, Debug)]
struct FamilyOutput {
    last_hidden_state: Tensor<3>,
    hidden_states: Captured<Tensor<3>>,
}

family!(Family, model::Block, hidden_states, -1, "blocks", false);

#[test]
fn a_declaration_may_come_out_of_a_macro() {
    let blocks = vec![model::Block::slot(&config(), &Init::new(&device()))];
    let model = Family { blocks, config: config(), recorders: OutputRecorders::default() };
    let output = model
        .forward(Tensor::ones([1, 2, 4], &device()), &ForwardKwargs::new().output_hidden_states(true))
        .expect("runs");
    assert_eq!(output.hidden_states.len(), 1);
    assert_eq!(output.last_hidden_state.dims(), [1, 2, 4]);
}
