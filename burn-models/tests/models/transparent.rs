//! A replacement that only calls its original changes nothing, whichever class of whichever family it stands in for.

use crate::support::{Case, devices, flat, for_each_decoder, recorded};
use burn::module::Module;
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_models::LanguageModelOutput;
use burn_models::layers::LayerContext;
use burn_models::models::{BaseModel, CausalLM, Decoder};
use patching_core::class::all_slots;
use patching_core::patch::{PatchSet, ReplacementClass};
use patching_core::prelude::*;
use patching_core::weights::LoadOptions;
use std::collections::BTreeMap;
use std::path::Path;

/// Defines a class around class `$class`, with the arguments of its constructor and of its `forward`.
macro_rules! wrapper {
    (
        $wrapper:ident($class:ident),
        new($($new:ident: $new_ty:ty),*),
        forward($($argument:ident: $ty:ty),*) -> $output:ty
    ) => {
        #[derive(Module, Debug)]
        pub struct $wrapper {
            original: Slot<$class>,
        }

        #[replaces($class)]
        impl $wrapper {
            fn new($($new: $new_ty,)* init: &Init) -> Self {
                Self { original: $class::slot($($new,)* init) }
            }

            fn forward(&self, $($argument: $ty),*) -> $output {
                self.original.forward($($argument),*)
            }
        }
    };
}

/// Defines a class around each class of a family, in a module of its name, and lists them.
macro_rules! wrapped_family {
    (
        $family:ident, $config:ident, $norm:ident, $rotary:ident, $attention:ident, $layer:ident
        $(, mlp $mlp:ident($($size:ident: $size_ty:ty)?))?
        $(, sparse $router:ident, $experts:ident, $block:ident)?
    ) => {
        mod $family {
            use super::*;
            use burn_models::$family::*;

            wrapper!(Norm($norm), new(size: usize, epsilon: f64), forward(x: Tensor<3>) -> Tensor<3>);
            wrapper!(
                Rotary($rotary),
                new(config: &$config),
                forward(position_ids: Tensor<2, Int>, dtype: DType) -> (Tensor<3>, Tensor<3>)
            );
            wrapper!(
                Attention($attention),
                new(config: &$config, layer_idx: usize),
                forward(x: Tensor<3>, context: &mut LayerContext) -> (Tensor<3>, Option<Tensor<4>>)
            );
            wrapper!(
                Layer($layer),
                new(config: &$config, layer_idx: usize),
                forward(x: Tensor<3>, context: &mut LayerContext) -> Tensor<3>
            );
            $(
                wrapper!(Mlp($mlp), new(config: &$config $(, $size: $size_ty)?), forward(x: Tensor<3>) -> Tensor<3>);
            )?
            $(
                wrapper!(
                    Router($router),
                    new(config: &$config, layer_idx: usize),
                    forward(x: Tensor<2>, context: &mut LayerContext) -> (Tensor<2>, Tensor<2>, Tensor<2, Int>)
                );
                wrapper!(
                    Experts($experts),
                    new(config: &$config),
                    forward(x: Tensor<2>, index: Tensor<2, Int>, weights: Tensor<2>, context: &LayerContext) -> Tensor<2>
                );
                wrapper!(
                    Block($block),
                    new(config: &$config, layer_idx: usize),
                    forward(x: Tensor<3>, context: &mut LayerContext) -> Tensor<3>
                );
            )?

            pub fn wrappers() -> Vec<(&'static str, ReplacementClass)> {
                vec![
                    (stringify!($norm), class::<Norm>()),
                    (stringify!($rotary), class::<Rotary>()),
                    (stringify!($attention), class::<Attention>()),
                    (stringify!($layer), class::<Layer>()),
                    $((stringify!($mlp), class::<Mlp>()),)?
                    $(
                        (stringify!($router), class::<Router>()),
                        (stringify!($experts), class::<Experts>()),
                        (stringify!($block), class::<Block>()),
                    )?
                ]
            }
        }
    };
}

wrapped_family!(
    llama, LlamaConfig, LlamaRMSNorm, LlamaRotaryEmbedding, LlamaAttention, LlamaDecoderLayer,
    mlp LlamaMLP()
);
wrapped_family!(
    mistral, MistralConfig, MistralRMSNorm, MistralRotaryEmbedding, MistralAttention, MistralDecoderLayer,
    mlp MistralMLP()
);
wrapped_family!(
    mixtral, MixtralConfig, MixtralRMSNorm, MixtralRotaryEmbedding, MixtralAttention, MixtralDecoderLayer,
    sparse MixtralTopKRouter, MixtralExperts, MixtralSparseMoeBlock
);
wrapped_family!(
    qwen2, Qwen2Config, Qwen2RMSNorm, Qwen2RotaryEmbedding, Qwen2Attention, Qwen2DecoderLayer,
    mlp Qwen2MLP()
);
wrapped_family!(
    qwen2_moe, Qwen2MoeConfig, Qwen2MoeRMSNorm, Qwen2MoeRotaryEmbedding, Qwen2MoeAttention, Qwen2MoeDecoderLayer,
    mlp Qwen2MoeMLP(intermediate_size: usize),
    sparse Qwen2MoeTopKRouter, Qwen2MoeExperts, Qwen2MoeSparseMoeBlock
);
wrapped_family!(
    qwen3, Qwen3Config, Qwen3RMSNorm, Qwen3RotaryEmbedding, Qwen3Attention, Qwen3DecoderLayer,
    mlp Qwen3MLP()
);

fn wrappers(model_type: &str) -> Vec<(&'static str, ReplacementClass)> {
    match model_type {
        "llama" => llama::wrappers(),
        "mistral" => mistral::wrappers(),
        "mixtral" => mixtral::wrappers(),
        "qwen2" => qwen2::wrappers(),
        "qwen2_moe" => qwen2_moe::wrappers(),
        "qwen3" => qwen3::wrappers(),
        other => panic!("no wrappers for {other}"),
    }
}

/// All values of a run, bit by bit, and how many of each key were recorded where.
#[derive(PartialEq)]
struct Ran {
    values: BTreeMap<String, (Vec<usize>, Vec<u8>)>,
    recorded: BTreeMap<&'static str, (usize, Vec<usize>)>,
}

impl Ran {
    fn new<M: CausalLM>(case: &Case, model: &M, device: &Device, kwargs: &ForwardKwargs) -> Self {
        let output = model.forward_causal(case.inputs(device), kwargs);
        let tuple = output.unwrap_or_else(|error| panic!("{}: {error}", case.name)).as_tuple();
        let bits = |data: TensorData| (data.shape().to_vec(), data.as_bytes().to_vec());
        let values = flat(&tuple).into_iter().map(|(key, data)| (key, bits(data))).collect();
        Self { values, recorded: recorded(&tuple) }
    }

    /// Panics where the two differ, with the name of what does.
    #[track_caller]
    fn assert_same(&self, other: &Self, what: &str) {
        assert_eq!(self.recorded, other.recorded, "{what}");
        assert_eq!(self.values.keys().collect::<Vec<_>>(), other.values.keys().collect::<Vec<_>>(), "{what}");
        self.assert_has(other, what);
    }

    /// The same for the values that the other has.
    #[track_caller]
    fn assert_has(&self, other: &Self, what: &str) {
        for (key, value) in &other.values {
            assert!(self.values.get(key) == Some(value), "{what}: `{key}` has other bits");
        }
    }
}

/// Everything that a model can record, or everything but `without`.
fn everything<M: CanRecordOutputs>(_: &M, without: &str) -> ForwardKwargs {
    let keys = M::RECORDERS.iter().map(|recorder| recorder.key()).filter(|key| *key != without);
    keys.fold(ForwardKwargs::new(), |kwargs, key| kwargs.output(key, true))
}

/// What a model does with each attention implementation: with everything recorded, and that recording changes nothing.
fn behaviour<M: CausalLM + Decoder>(case: &Case, model: &mut M, device: &Device, what: &str) -> [Ran; 2] {
    ["sdpa", "eager"].map(|attention| {
        model.base_mut().set_attn_implementation(attention).expect("built in");
        let all = Ran::new(case, model, device, &everything(model.base(), ""));
        let mut off = Ran::new(case, model, device, &ForwardKwargs::new());
        assert!(off.recorded.values().all(|(_, present)| present.is_empty()), "{what}");
        // a fused implementation has no weights to give, so that recording them takes another
        let without = if attention == "sdpa" { "attentions" } else { "" };
        let on = Ran::new(case, model, device, &everything(model.base(), without));
        assert!(on.recorded.values().any(|(_, present)| !present.is_empty()), "{what}");
        if on.values.contains_key("aux_loss") {
            // it is part of the loss, where routers are recorded
            off.values.remove("loss");
        }
        on.assert_has(&off, &format!("{what}, {attention}, recorded or not"));
        all
    })
}

fn bytes(folder: &Path) -> Vec<u8> {
    std::fs::read(folder.join("model.safetensors")).expect("the weights are there")
}

/// Checks one case on one device; gives how many slots were replaced.
fn wrapping_changes_nothing<M: CausalLM + Decoder>(case: &Case, on: &str, device: &Device) -> usize {
    let load = |patches: PatchSet, folder: &Path| {
        M::from_pretrained_with(folder, device, &LoadOptions::new().patches(patches)).expect("loads")
    };
    let all = wrappers(M::Config::MODEL_TYPES[0]);
    let each = all.iter().map(|(name, wrapper)| vec![(*name, wrapper.clone())]);
    let mut sets: Vec<_> = each.chain([all.clone()]).collect();
    if on != devices()[0].0 {
        // a second device computes the same graph: once with all of them
        sets = vec![all.clone()];
    }
    let mut replaced = 0;
    // a published checkpoint and a fused one, where there are both
    let mut folders = vec![case.folder()];
    folders.extend(Some(case.checkpoint()).filter(|fused| *fused != case.folder()));
    for folder in folders {
        let (mut plain, _) = load(PatchSet::default(), folder);
        let slots = all_slots(&plain);
        let classes: Vec<&str> = slots.iter().map(|slot| slot.class).collect();
        assert!(classes.iter().all(|class| all.iter().any(|(name, _)| name == class)), "a class without a wrapper");
        let expected = behaviour(case, &mut plain, device, case.name);
        for set in &sets {
            let names: Vec<&str> = set.iter().map(|(name, _)| *name).collect();
            let what = format!("{} on {on}, {}", case.name, names.join(" and "));
            let (mut model, report) = load(PatchSet::new(set.clone()).expect("valid"), folder);
            let count = classes.iter().filter(|class| names.contains(class)).count();
            assert_eq!(report.patches.replaced.len(), count, "{what}");
            replaced += count;

            let saved = tempfile::tempdir().expect("a folder");
            model.save_pretrained(saved.path()).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(bytes(saved.path()) == bytes(folder), "{what}: other bytes in the checkpoint");

            let found = behaviour(case, &mut model, device, &what);
            for (found, expected) in found.iter().zip(&expected) {
                found.assert_same(expected, &what);
            }
        }
    }
    replaced
}

#[test]
fn wrapping_any_class_of_any_family_changes_nothing() {
    for (on, device) in devices() {
        for_each_decoder!(case, Model => {
            assert!(wrapping_changes_nothing::<Model>(&case, on, &device) > 0, "{}", case.name);
        });
    }
}
