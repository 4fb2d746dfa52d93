//! The code that `docs/from-transformers.md` shows, whole: each module is one of its blocks with what is around it.
#![allow(unused_imports, dead_code, reason = "blocks show what a reader would import")]

pub mod declaring {
    use burn::{
        nn::{Embedding, EmbeddingConfig, Linear, LinearConfig},
        prelude::*,
    };
    use burnlens::prelude::*;
    #[derive(Clone, Debug, ConfigDefaults)]
    pub struct MyConfig {
        pub vocab_size: usize,
        pub hidden_size: usize,
        pub num_layers: usize,
        pub use_cache: bool,
    }
    #[derive(Module, Debug)]
    pub struct MyAttention {
        proj: Linear,
    }
    #[module_class]
    impl MyAttention {
        pub fn new(config: &MyConfig, init: &Init) -> Self {
            Self { proj: LinearConfig::new(config.hidden_size, config.hidden_size).init(init.device()) }
        }
        pub fn forward(&self, x: Tensor<3>) -> (Tensor<3>, Option<Tensor<3>>) {
            let weights = self.proj.forward(x.clone()).matmul(x.clone().swap_dims(1, 2));
            (weights.clone().matmul(x), Some(weights))
        }
    }
    #[derive(Module, Debug)]
    pub struct MyBlock {
        self_attn: Slot<MyAttention>,
        crossattention: Slot<MyAttention>,
    }
    #[module_class]
    impl MyBlock {
        pub fn new(config: &MyConfig, init: &Init) -> Self {
            Self { self_attn: MyAttention::slot(config, init), crossattention: MyAttention::slot(config, init) }
        }
        pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
            let x = self.self_attn.forward(x).0;
            self.crossattention.forward(x).0
        }
    }
    #[derive(ModelOutput, Clone, Debug)]
    pub struct MyOutput {
        pub last_hidden_state: Tensor<3>,
        pub hidden_states: Captured<Tensor<3>>,
        pub attentions: Captured<Tensor<3>>,
        pub cross_attentions: Captured<Tensor<3>>,
    }

    #[derive(Module, Debug, CanRecordOutputs)]
    #[can_record_outputs(
        hidden_states = MyBlock,
        attentions = MyAttention,
        cross_attentions = OutputRecorder(MyAttention, layer_name = "crossattention", index = 1),
    )]
    pub struct MyModel {
        embed_tokens: Embedding,
        layers: Vec<Slot<MyBlock>>,
        #[module(skip)]
        config: MyConfig,
        recorders: OutputRecorders,
    }

    impl MyModel {
        #[merge_with_config_defaults]
        #[capture_outputs]
        pub fn forward(
            &self,
            input_ids: Tensor<2, Int>,
            use_cache: Option<bool>,
            kwargs: &ForwardKwargs,
        ) -> Result<MyOutput, CaptureError> {
            let _ = use_cache;
            let embedded = self.embed_tokens.forward(input_ids);
            Ok(MyOutput::new(self.layers.iter().fold(embedded, |x, layer| layer.forward(x))))
        }
    }

    pub fn main() -> Result<(), CaptureError> {
        let device = Device::flex();
        let config = MyConfig { vocab_size: 5, hidden_size: 4, num_layers: 2, use_cache: true };
        let init = Init::new(&device);
        let model = MyModel {
            embed_tokens: EmbeddingConfig::new(5, 4).init(&device),
            layers: (0..2).map(|_| MyBlock::slot(&config, &init)).collect(),
            config,
            recorders: OutputRecorders::default(),
        };
        let kwargs = ForwardKwargs::new().output_hidden_states(true).output_attentions(true);
        let output = model.forward(Tensor::zeros([1, 3], &device), None, &kwargs)?;
        assert_eq!((output.hidden_states.len(), output.attentions.len(), output.cross_attentions.len()), (3, 2, 2));
        Ok(())
    }
}

pub mod asking {
    use burn::tensor::{Device, Int, Tensor};
    use burnlens::burn_models::llama::LlamaForCausalLM;
    use burnlens::prelude::*;

    pub fn main() -> Result<(), Box<dyn std::error::Error>> {
        let model = LlamaForCausalLM::from_pretrained("models/tiny-decoder", &Device::flex())?;
        let input_ids = Tensor::<2, Int>::from_data([[2_i64, 13, 6, 25]], &Device::flex());
        let kwargs = ForwardKwargs::new().output_hidden_states(true).output_attentions(true);
        let out = model.forward(input_ids, &kwargs)?;
        let last = out.hidden_states.at(-1)?;
        assert_eq!(last.dims(), [1, 4, 64]);
        Ok(())
    }
}

pub mod defining {
    use burn::prelude::*;
    use burnlens::burn_models::auto::AutoModelForCausalLM;
    use burnlens::burn_models::layers::LayerContext;
    use burnlens::burn_models::llama::{LlamaAttention, LlamaConfig, LlamaForCausalLM};
    use burnlens::patching_core::class::slots;
    use burnlens::prelude::*;

    #[derive(Module, Debug)]
    pub struct CustomLlamaAttention {
        original: Slot<LlamaAttention>, // in place of a superclass
    }

    #[replaces(LlamaAttention)]
    impl CustomLlamaAttention {
        pub fn new(config: &LlamaConfig, layer_idx: usize, init: &Init) -> Self {
            Self { original: LlamaAttention::slot(config, layer_idx, init) }
        }

        pub fn forward(&self, hidden_states: Tensor<3>, context: &mut LayerContext) -> (Tensor<3>, Option<Tensor<4>>) {
            self.original.forward(hidden_states, context)
        }
    }

    pub fn main() -> Result<(), Box<dyn std::error::Error>> {
        let (device, folder) = (Device::flex(), "models/tiny-decoder");
        register_patch_mapping([("LlamaAttention", class::<CustomLlamaAttention>())])?;
        let model = AutoModelForCausalLM::from_pretrained(folder, &device)?;
        let (path, attention) = &slots::<LlamaAttention, _>(&model)[0];
        assert_eq!(path, "model.layers.0.self_attn");
        assert!(attention.implementation::<CustomLlamaAttention>().is_some());
        clear_patch_mapping();
        let _ = LlamaForCausalLM::from_pretrained(folder, &device)?;
        Ok(())
    }
}

pub mod managing {
    use burn::prelude::*;
    use burnlens::patching_core::patch::{PatchError, original};
    use burnlens::prelude::*;
    #[derive(Module, Debug)]
    pub struct MyMlp {}
    #[module_class]
    impl MyMlp {
        pub fn new(_init: &Init) -> Self {
            Self {}
        }
        pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
            x
        }
    }
    #[derive(Module, Debug)]
    pub struct A {}
    #[replaces(MyMlp)]
    impl A {
        pub fn new(_init: &Init) -> Self {
            Self {}
        }
        pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
            x
        }
    }
    pub fn main() -> Result<(), PatchError> {
        register_patch_mapping_with([("MyMlp", class::<A>()), ("Mlp$", class::<A>())], true)?; // overwrite
        assert_eq!(get_patch_mapping().to_string(), "{MyMlp: A, Mlp$: A}");
        unregister_patch_mapping(["MyMlp", "Mlp$"])?;
        clear_patch_mapping();
        Ok(())
    }
}

pub mod by_value {
    use burn::prelude::*;
    use burnlens::burn_models::llama::{LlamaConfig, LlamaForCausalLM, LlamaMLP};
    use burnlens::patching_core::patch::PatchSet;
    use burnlens::patching_core::weights::LoadOptions;
    use burnlens::prelude::*;
    #[derive(Module, Debug)]
    pub struct NoMlp {}
    #[replaces(LlamaMLP)]
    impl NoMlp {
        pub fn new(_config: &LlamaConfig, _init: &Init) -> Self {
            Self {}
        }
        pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
            x
        }
    }
    pub fn main() -> Result<(), Box<dyn std::error::Error>> {
        let (device, folder) = (Device::flex(), "models/tiny-decoder");
        let patches = PatchSet::new([("LlamaMLP", class::<NoMlp>()), ("LlamaMPL", class::<NoMlp>())])?;

        // a dry run: what would be replaced, and which keys match nothing
        let config = LlamaConfig::from_pretrained(folder)?;
        let plan = LlamaForCausalLM::patch_plan(&config, &device, &patches)?;
        assert_eq!(plan.replaced.len(), 2);
        assert_eq!(plan.unmatched[0].key, "LlamaMPL"); // and why: did you mean `LlamaMLP`?

        let options = LoadOptions::new().patches(patches);
        let (model, report) = LlamaForCausalLM::from_pretrained_with(folder, &device, &options)?;
        assert_eq!(report.patches, plan);
        let _ = model;
        Ok(())
    }
}

pub mod by_hand {
    use burn::prelude::*;
    use burnlens::burn_models::llama::{LlamaConfig, LlamaMLP, LlamaModel};
    use burnlens::patching_core::class::slots;
    use burnlens::prelude::*;
    #[derive(Module, Debug)]
    pub struct NoMlp {}
    #[replaces(LlamaMLP)]
    impl NoMlp {
        pub fn new(_config: &LlamaConfig, _init: &Init) -> Self {
            Self {}
        }
        pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
            x
        }
    }
    pub fn main() -> Result<(), Box<dyn std::error::Error>> {
        let (device, config) = (Device::flex(), LlamaConfig::from_pretrained("models/tiny-decoder")?);
        register_patch_mapping([("LlamaMLP", class::<NoMlp>())])?;
        let mut patched = apply_patches(&device, |init| LlamaModel::new(&config, init))?;
        let plain = LlamaModel::new(&config, &Init::new(&device));
        assert!(slots::<LlamaMLP, _>(&patched)[0].1.implementation::<NoMlp>().is_some());
        assert!(slots::<LlamaMLP, _>(&plain)[0].1.implementation::<LlamaMLP>().is_some());

        patch_output_recorders(&mut patched); // in this instance only
        clear_patch_mapping();
        Ok(())
    }
}

pub mod converting {
    use burnlens::patching_core::weights::clear_checkpoint_conversion_mapping;
    use burnlens::patching_core::weights::{
        Concatenate, ConversionError, WeightConverter, register_checkpoint_conversion_mapping_with,
    };

    pub fn main() -> Result<(), ConversionError> {
        register_checkpoint_conversion_mapping_with(
            "llama",
            [WeightConverter::new(["q_proj", "k_proj", "v_proj"], "qkv_proj").with(Concatenate::dim(0))],
            true, // overwrite
        )?;
        clear_checkpoint_conversion_mapping();
        Ok(())
    }
}

pub mod routing {
    use burn::prelude::*;
    use burnlens::burn_models::TextInputs;
    use burnlens::burn_models::qwen2_moe::Qwen2MoeForCausalLM;
    use burnlens::burn_models::routing::ExpertRouting;
    use burnlens::prelude::*;

    pub fn main() -> Result<(), Box<dyn std::error::Error>> {
        let model = Qwen2MoeForCausalLM::from_pretrained("burn-models/tests/fixtures/qwen2_moe", &Device::flex())?;
        let input_ids = Tensor::<2, Int>::from_data([[1_i64, 5, 9]], &Device::flex());
        let recorded = model.forward(input_ids.clone(), &ForwardKwargs::new().output("router_indices", true))?;
        let routing = ExpertRouting::from_recorded(&recorded.router_indices, model.config().num_experts)?;
        let for_an_engine: Vec<u8> = routing.to_array()?; // [tokens, layers, top_k]
        assert_eq!(for_an_engine.len(), 3 * 3 * 2);

        let inputs = TextInputs::new(input_ids).expert_routing(routing);
        let replayed = model.forward(inputs, &ForwardKwargs::new())?;
        assert_eq!(replayed.logits.into_data(), recorded.logits.into_data());
        Ok(())
    }
}

pub mod conversions_by_value {
    use burn::nn::{Linear, LinearConfig};
    use burn::prelude::*;
    use burn::tensor::activation::silu;
    use burnlens::burn_models::llama::{LlamaConfig, LlamaForCausalLM, LlamaMLP};
    use burnlens::patching_core::weights::{
        CheckpointLayout, Concatenate, ConversionMapping, LoadOptions, SaveOptions, WeightTransform,
    };
    use burnlens::prelude::*;

    #[derive(Module, Debug)]
    pub struct Fused {
        gate_up_proj: Linear,
        down_proj: Linear,
    }

    #[derive(Module, Debug)]
    pub struct FusedMlp {
        feed_forward: FeedForward,
    }

    #[derive(Module, Debug)]
    pub struct FeedForward {
        mlp: Fused,
    }

    #[replaces(LlamaMLP)]
    impl FusedMlp {
        pub fn new(config: &LlamaConfig, init: &Init) -> Self {
            let linear = |inputs, outputs| LinearConfig::new(inputs, outputs).with_bias(false).init(init.device());
            let mlp = Fused {
                gate_up_proj: linear(config.hidden_size, 2 * config.intermediate_size),
                down_proj: linear(config.intermediate_size, config.hidden_size),
            };
            Self { feed_forward: FeedForward { mlp } }
        }

        pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
            let mlp = &self.feed_forward.mlp;
            let halves = mlp.gate_up_proj.forward(x).chunk(2, 2);
            mlp.down_proj.forward(silu(halves[0].clone()) * halves[1].clone())
        }
    }

    pub fn main() -> Result<(), Box<dyn std::error::Error>> {
        let (device, folder) = (Device::flex(), "models/tiny-decoder");
        let saved = [tempfile::tempdir()?, tempfile::tempdir()?];
        let [as_it_was, as_it_is_here] = [saved[0].path(), saved[1].path()];

        let rules = ConversionMapping::new([
            WeightTransform::from(WeightRenaming::new("mlp", "mlp.feed_forward.mlp")),
            WeightConverter::new(["gate_proj", "up_proj"], "gate_up_proj").with(Concatenate::dim(0)).into(),
        ])?;
        let patches = PatchSet::new([("LlamaMLP", class::<FusedMlp>())])?;
        let options = LoadOptions::new().patches(patches).conversions(rules);
        let (model, report) = LlamaForCausalLM::from_pretrained_with(folder, &device, &options)?;

        model.save_pretrained(as_it_was)?; // the bytes that were loaded
        let fused = SaveOptions::new().layout(CheckpointLayout::Model);
        model.save_pretrained_with(as_it_is_here, &fused)?;

        assert_eq!(report.converted.len(), 2);
        let read = |folder: &std::path::Path| std::fs::read(folder.join("model.safetensors"));
        assert!(read(as_it_was)? == read(folder.as_ref())?);
        assert!(read(as_it_is_here)? != read(folder.as_ref())?);
        Ok(())
    }
}

pub mod in_a_model_that_lives {
    use burn::prelude::*;
    use burnlens::burn_models::llama::{LlamaConfig, LlamaForCausalLM, LlamaMLP};
    use burnlens::prelude::*;

    #[derive(Module, Debug)]
    pub struct Scaled {
        original: Slot<LlamaMLP>,
        by: f64,
    }

    #[replaces(LlamaMLP)]
    impl Scaled {
        pub fn new(config: &LlamaConfig, init: &Init) -> Self {
            Self { original: LlamaMLP::slot(config, init), by: 1.0 }
        }

        pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
            self.original.forward(x) * self.by
        }
    }

    pub fn main() -> Result<(), Box<dyn std::error::Error>> {
        let device = Device::flex();
        let mut model = LlamaForCausalLM::from_pretrained("models/tiny-decoder", &device)?;
        let logits = |model: &LlamaForCausalLM| {
            let tokens = Tensor::<2, Int>::from_data([[2_i64, 13, 6]], &Device::flex());
            model.forward(tokens, &ForwardKwargs::new()).map(|output| output.logits.into_data())
        };
        let before = logits(&model)?;

        let scaled = replace_slots::<LlamaMLP, _>(&mut model, "layers.1", |_path, mlp| {
            Slot::of(Scaled { original: mlp.clone(), by: 0.5 })
        })?;
        assert!(logits(&model)? != before);
        scaled.put_back(&mut model)?;
        assert!(logits(&model)? == before);
        Ok(())
    }
}
