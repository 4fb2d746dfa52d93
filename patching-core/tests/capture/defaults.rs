//! What a call falls back to: the config, then off.

use crate::model::*;
use patching_core::capture::{OutputTuple, Returned};
use patching_core::prelude::*;

fn model(config: ToyConfig) -> ToyModel {
    ToyModel::new(&config, &Init::new(&device()))
}

#[test]
fn the_config_decides_where_the_caller_says_nothing() {
    let model = model(ToyConfig {
        output_hidden_states: Some(true),
        output_attentions: Some(Flag::from([0])),
        ..ToyConfig::tiny()
    });
    let output = model.forward(input(), &with_memory(), &ForwardKwargs::new()).expect("runs");
    assert_eq!(output.hidden_states.iter().count(), 4);
    assert_eq!(paths(&output.attentions), [(0, "layers.0.self_attn".to_owned())]);
    assert_eq!(paths(&output.cross_attentions), [(0, "layers.0.crossattention".to_owned())]);
    let none = ForwardKwargs::new().output_hidden_states(None::<bool>).output_attentions(None::<bool>);
    assert_eq!(model.forward(input(), &with_memory(), &none).expect("runs").hidden_states.iter().count(), 4);
}

#[test]
fn the_callers_word_wins() {
    let model =
        model(ToyConfig { output_hidden_states: Some(true), output_attentions: Some(Flag::On), ..ToyConfig::tiny() });
    let kwargs = ForwardKwargs::new().output_hidden_states(false).output_attentions(2);
    let output = model.forward(input(), &with_memory(), &kwargs).expect("runs");
    assert!(!output.hidden_states.is_recorded());
    assert_eq!(output.attentions.iter().map(|(position, ..)| position).collect::<Vec<_>>(), [2]);
}

#[test]
fn use_cache_comes_from_the_config_unless_given() {
    let with = |config: Option<bool>, caller: Option<bool>| {
        let config = ToyConfig { use_cache: config, ..ToyConfig::tiny() };
        model(config)
            .forward(input(), &Context::default(), &ForwardKwargs::new().use_cache(caller))
            .expect("runs")
            .cache
            .is_some()
    };
    assert!(with(Some(true), None));
    assert!(!with(Some(true), Some(false)));
    assert!(with(Some(false), Some(true)));
    assert!(!with(None, None));
}

#[cfg(feature = "autodiff")]
#[test]
fn use_cache_is_off_while_training_with_gradient_checkpointing() {
    use burn::module::Module;
    let config = ToyConfig { use_cache: Some(true), ..ToyConfig::tiny() };
    let with = |device: &burn::tensor::Device, caller: Option<bool>| {
        let model = ToyModel::new(&config, &Init::new(device)).to_device(device);
        let input = input().to_device(device);
        model
            .forward(input, &Context::default(), &ForwardKwargs::new().use_cache(caller))
            .expect("runs")
            .cache
            .is_some()
    };
    let training = device().autodiff();
    assert!(with(&training, None) && with(&training, Some(true)));
    let checkpointing = device().autodiff().gradient_checkpointing();
    assert!(!with(&checkpointing, None) && !with(&checkpointing, Some(true)));
}

#[test]
fn a_tuple_on_request_or_by_the_config() {
    let output = || {
        model(ToyConfig::tiny())
            .forward(input(), &Context::default(), &ForwardKwargs::new().output_hidden_states(0))
            .expect("runs")
    };
    let names = |tuple: &OutputTuple| tuple.names().collect::<Vec<_>>();
    let Returned::Tuple(tuple) = output().returned(Some(false)) else { panic!("asked for a tuple") };
    assert_eq!(names(&tuple), ["last_hidden_state", "hidden_states"]);
    assert!(matches!(output().returned(None), Returned::Struct(_)));
    assert!(matches!(output().returned(Some(true)), Returned::Struct(_)));
}

mod named_arguments {
    use super::*;
    use burn::prelude::*;

    #[derive(Module, Debug, CanRecordOutputs)]
    pub struct Asking {
        scale: burn::module::Param<Tensor<1>>,
        #[module(skip)]
        config: ToyConfig,
        recorders: OutputRecorders,
    }

    impl Asking {
        /// What the body sees: the argument, then what an inner model that is handed `kwargs` would see.
        #[merge_with_config_defaults]
        fn seen(&self, use_cache: Option<bool>, kwargs: &ForwardKwargs) -> (Option<bool>, Option<bool>) {
            assert_eq!(self.scale.dims(), [1]);
            (use_cache, kwargs.get_use_cache())
        }
    }

    #[test]
    fn a_call_has_one_use_cache() {
        let config = ToyConfig { use_cache: Some(true), ..ToyConfig::tiny() };
        let scale = burn::module::Param::from_tensor(Tensor::ones([1], &device()));
        let model = Asking { scale, config, recorders: OutputRecorders::default() };
        let (none, on, off) =
            (ForwardKwargs::new(), ForwardKwargs::new().use_cache(true), ForwardKwargs::new().use_cache(false));
        for (argument, kwargs, expected) in [
            (None, &none, true),
            (None, &off, false),
            (Some(false), &none, false),
            (Some(false), &on, false),
            (Some(true), &off, true),
        ] {
            assert_eq!(model.seen(argument, kwargs), (Some(expected), Some(expected)), "{argument:?}");
        }
    }
}
