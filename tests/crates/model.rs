//! Everything that the macros take, in the forms that users write it.
//!
//! Part of each crate here, and of `tests/macros.rs`, which runs it.

use crate::capture::{CaptureError, Element, Keep};
use crate::prelude::*;
use burn::nn::{Linear, LinearConfig};
use burn::prelude::*;

/// Has what a call falls back to.
#[derive(Clone, Debug, Default, ConfigDefaults)]
pub(crate) struct Config {
    pub(crate) width: usize,
    pub(crate) num_layers: Option<u32>,
    pub(crate) output_attentions: Option<Flag>,
    pub(crate) output_hidden_states: bool,
    pub(crate) use_cache: bool,
    pub(crate) is_causal: Option<bool>,
    pub(crate) return_dict: Option<bool>,
    pub(crate) depth: Option<usize>,
    pub(crate) vision_feature_select_strategy: Option<String>,
}

/// A class that nobody else sees, with all kinds of arguments.
pub(crate) mod private {
    use super::*;

    pub(super) struct Hidden<'a> {
        pub(super) scale: &'a f32,
        pub(super) calls: usize,
    }

    /// What an element may be besides a tensor.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct Name(pub(crate) &'static str);
    impl Element for Name {
        type Value = Self;
        fn value(&self, _keep: Keep) -> Option<Self> {
            Some(self.clone())
        }
    }

    #[derive(Module, Debug)]
    pub(super) struct Attention {
        proj: Linear,
    }

    #[module_class]
    impl Attention {
        pub(super) const HEADS: usize = 2;

        /// Not part of the class.
        fn helper(&self) -> usize {
            Self::HEADS
        }

        pub(super) fn new(_: [usize; Self::HEADS], Config { width, .. }: &Config, init: &Init) -> Self {
            Self { proj: LinearConfig::new(*width, *width).init(init.device()) }
        }

        /// Attends.
        #[allow(clippy::needless_pass_by_value)]
        pub(super) fn forward<'a>(
            &self,
            mut hidden_states: Tensor<3>,
            hidden: &mut Hidden<'a>,
            _: Option<&Self>,
            (left, right): (usize, &'a usize),
            callback: &dyn Fn(usize) -> usize,
        ) -> (Tensor<3>, Option<Tensor<3>>, Name) {
            hidden.calls += callback(left + right) + self.helper();
            hidden_states = self.proj.forward(hidden_states) * *hidden.scale;
            (hidden_states.clone(), Some(hidden_states), Name("attention"))
        }
    }
}

#[derive(Module, Debug)]
pub(crate) struct Block {
    self_attn: Slot<private::Attention>,
}

#[module_class]
impl Block {
    const fn unused() {}

    pub(crate) fn new(config: &Config, init: &crate::prelude::Init) -> Block {
        let () = Self::unused();
        Self { self_attn: private::Attention::slot([1, 2], config, init) }
    }

    /// A class may fail.
    pub(crate) fn forward(&self, hidden_states: &Tensor<3>) -> Result<Tensor<3>, CaptureError> {
        let mut hidden = private::Hidden { scale: &1.5, calls: 0 };
        Ok(self.self_attn.forward(hidden_states.clone(), &mut hidden, None, (1, &2), &|n| n).0)
    }
}

#[derive(ModelOutput, Clone, Debug)]
pub(crate) struct Output {
    pub(crate) last_hidden_state: Tensor<3>,
    pub(crate) depth: Depth,
    pub(crate) hidden_states: Captured<Tensor<3>>,
    pub(crate) attentions: Captured<Tensor<3>>,
    pub(crate) names: Captured<private::Name>,
}

/// A value that is no tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Depth(pub(crate) usize);
impl crate::prelude::OutputField for Depth {
    fn output_value(&self) -> Option<crate::capture::OutputValue> {
        Some(crate::capture::OutputValue::Opaque("Depth"))
    }
}

/// The user's own error, behind aliases with no and with one parameter.
#[derive(Debug)]
pub(crate) enum ModelError {
    Capture(CaptureError),
}
impl From<CaptureError> for ModelError {
    fn from(error: CaptureError) -> Self {
        Self::Capture(error)
    }
}
pub(crate) type Answer = Result<Output, ModelError>;
pub(crate) type Fallibly<T> = Result<T, ModelError>;

pub(crate) struct Inputs<'a> {
    pub(crate) embeddings: &'a Tensor<3>,
    pub(crate) _more: usize,
}

#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(
    hidden_states = OutputRecorder(Block, num_hidden_layers_key = "num_layers"),
    attentions = [OutputRecorder(private::Attention, layer_name = "self_attn"), "Elsewhere"],
)]
#[can_record_outputs(names = OutputRecorder("Attention", index = -1))]
pub(crate) struct Model {
    pub(crate) layers: Vec<Slot<Block>>,
    #[module(skip)]
    pub(crate) cfg: Holder,
    own: OutputRecorders,
    #[module(skip)]
    config: Config,
}

#[derive(Clone, Debug)]
pub(crate) struct Holder {
    pub(crate) inner: Config,
}

impl Model {
    pub(crate) fn new(config: Config, init: &Init) -> Self {
        let layers = (0..2).map(|_| Block::slot(&config, init)).collect();
        Self { layers, cfg: Holder { inner: config.clone() }, own: OutputRecorders::default(), config }
    }

    /// Patterns, flags, a request by value, generics, and loops in any place.
    #[merge_with_config_defaults(depth, config = self.cfg.inner, kwargs = request)]
    #[capture_outputs(config = self.cfg.inner, tie_last_hidden_states = false, kwargs = request)]
    #[expect(clippy::too_many_arguments, reason = "a long signature")]
    pub(crate) fn forward<'a, F: Fn(usize)>(
        &'a self,
        Inputs { embeddings, .. }: Inputs<'a>,
        visit: F,
        extra: impl IntoIterator<Item = usize>,
        mut use_cache: Option<bool>,
        depth: Option<usize>,
        output_attentions: Option<bool>,
        output_names: Flag,
        other: &ForwardKwargs,
        request: ForwardKwargs,
    ) -> Answer {
        let _ = (other, request.get_is_causal());
        let mut hidden_states = embeddings.clone();
        let outside = || {
            for n in [1, 2] {
                visit(n);
            }
        };
        outside();
        let mut layers = self.layers.iter();
        let seen = 'layers: loop {
            let Some(layer) = layers.next() else { break 'layers 2 };
            if extra_is_odd(&hidden_states) {
                continue 'layers;
            }
            hidden_states = layer.forward(&hidden_states)?;
        };
        for n in extra {
            visit(n + seen);
        }
        if use_cache == Some(true) {
            use_cache = None;
        }
        Ok(Output::new(hidden_states, Depth(depth.unwrap_or(0) + usize::from(use_cache.is_none()))))
    }
}

fn extra_is_odd(_: &Tensor<3>) -> bool {
    false
}

/// A second base model in one file, whose macros stand the other way around.
#[derive(Module, Debug, CanRecordOutputs)]
#[can_record_outputs(hidden_states = Block)]
pub(crate) struct Second {
    layer: Slot<Block>,
    recorders: OutputRecorders,
    #[module(skip)]
    config: Config,
}

impl Second {
    pub(crate) fn new(config: Config, init: &Init) -> Self {
        Self { layer: Block::slot(&config, init), recorders: OutputRecorders::default(), config }
    }

    #[capture_outputs]
    #[merge_with_config_defaults]
    pub(crate) fn encode(
        &self,
        hidden_states: &Tensor<3>,
        vision_feature_select_strategy: Option<String>,
        is_causal: Option<bool>,
        kwargs: &ForwardKwargs,
    ) -> Fallibly<Output> {
        let depth =
            Depth(vision_feature_select_strategy.map_or(0, |text| text.len()) + usize::from(is_causal == Some(true)));
        let _ = kwargs;
        Ok(Output::new(self.layer.forward(hidden_states)?, depth))
    }
}

/// A model that declares nothing, and one that is generic.
#[derive(Module, Debug, CanRecordOutputs)]
pub(crate) struct Silent<const N: usize> {
    recorders: OutputRecorders,
    #[module(skip)]
    config: Config,
}

impl<const N: usize> Silent<N> {
    pub(crate) fn new() -> Self {
        Self { recorders: OutputRecorders::default(), config: Config::default() }
    }

    #[capture_outputs]
    pub(crate) fn forward(&self, hidden_states: Tensor<3>, kwargs: &ForwardKwargs) -> Fallibly<Output> {
        Ok(Output::new(hidden_states, Depth(N)))
    }
}

/// Classes inside functions, and in what a `macro_rules!` writes.
pub(crate) fn in_a_function(init: &Init, x: Tensor<2>) -> Tensor<2> {
    #[derive(Module, Debug)]
    struct Local;
    #[module_class]
    impl Local {
        fn new(init: &Init) -> Self {
            let _ = init;
            Self
        }
        fn forward(&self, x: Tensor<2>) -> Tensor<2> {
            x * 2
        }
    }

    macro_rules! class {
        ($name:ident, $input:ty, $by:expr) => {
            #[derive(Module, Debug)]
            struct $name;
            #[module_class]
            impl $name {
                fn new(init: &Init) -> Self {
                    let _ = init;
                    Self
                }
                fn forward(&self, x: $input) -> $input {
                    x * $by
                }
            }
        };
    }
    class!(Written, Tensor<2>, 3);
    Written::slot(init).forward(Local::slot(init).forward(x))
}

/// Uses what nothing else here does.
pub(crate) fn run(device: &Device) -> (Output, f32) {
    let config = Config { width: 4, num_layers: Some(2), ..Config::default() };
    let init = Init::new(device);
    let model = Model::new(config.clone(), &init);
    let embeddings = Tensor::<3>::ones([1, 2, 4], device);
    let inputs = Inputs { embeddings: &embeddings, _more: 0 };
    let mut request = ForwardKwargs::new();
    request = request.output_hidden_states(true);
    let other = ForwardKwargs::new();
    let output = model.forward(inputs, |_| {}, [1], None, Some(3), Some(true), Flag::from(-1), &other, request);
    let second = Second::new(config, &init).encode(&embeddings, Some("full".to_owned()), Some(true), &other);
    assert!(second.is_ok_and(|output| output.depth == Depth(5)), "4 letters and causal");
    let silent = Silent::<7>::new().forward(embeddings, &other);
    assert!(silent.is_ok_and(|output| output.depth == Depth(7)), "as declared");
    let six = in_a_function(&init, Tensor::ones([1, 1], device));
    match output {
        Ok(output) => (output, six.into_scalar()),
        Err(ModelError::Capture(error)) => panic!("{error}"),
    }
}
