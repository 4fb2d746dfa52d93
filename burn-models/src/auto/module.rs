//! A model of any family is a module like the one that it holds, under the same paths.

use super::{AutoModel, AutoModelForCausalLM, AutoModelForSequenceClassification};
use burn::module::{
    Content, Devices, DisplaySettings, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor,
};
use burn::tensor::Device;

/// Hands everything to whatever model it is.
macro_rules! module_of_variants {
    ($($auto:ident { $($variant:ident),* })*) => { $(
        impl Module for $auto {
            fn collect_devices(&self, devices: Devices) -> Devices {
                match self { $(Self::$variant(model) => model.collect_devices(devices)),* }
            }

            fn fork(self, device: &Device) -> Self {
                match self { $(Self::$variant(model) => Self::$variant(model.fork(device).into())),* }
            }

            fn to_device(self, device: &Device) -> Self {
                match self { $(Self::$variant(model) => Self::$variant(model.to_device(device).into())),* }
            }

            fn train(self) -> Self {
                match self { $(Self::$variant(model) => Self::$variant(model.train().into())),* }
            }

            fn valid(&self) -> Self {
                match self { $(Self::$variant(model) => Self::$variant(model.valid().into())),* }
            }

            fn materialize(self) -> Self {
                match self { $(Self::$variant(model) => Self::$variant(model.materialize().into())),* }
            }

            fn visit<Visitor: ModuleVisitor>(&self, visitor: &mut Visitor) {
                match self { $(Self::$variant(model) => model.visit(visitor)),* }
            }

            fn map<Mapper: ModuleMapper>(self, mapper: &mut Mapper) -> Self {
                match self { $(Self::$variant(model) => Self::$variant(model.map(mapper).into())),* }
            }
        }

        impl ModuleDisplayDefault for $auto {
            fn content(&self, content: Content) -> Option<Content> {
                match self { $(Self::$variant(model) => model.content(content)),* }
            }

            fn num_params(&self) -> usize {
                Module::num_params(self)
            }
        }

        impl ModuleDisplay for $auto {
            fn format(&self, settings: DisplaySettings) -> String {
                match self { $(Self::$variant(model) => model.format(settings)),* }
            }
        }

        impl std::fmt::Display for $auto {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&ModuleDisplay::format(self, DisplaySettings::default()))
            }
        }
    )* };
}

module_of_variants! {
    AutoModel { Bert, Gpt2, Llama, Mistral, Mixtral, Qwen2, Qwen2Moe, Qwen3 }
    AutoModelForCausalLM { Bert, Gpt2, Llama, Mistral, Mixtral, Qwen2, Qwen2Moe, Qwen3 }
    AutoModelForSequenceClassification { Bert, Gpt2, Llama, Mistral, Mixtral, Qwen2, Qwen2Moe, Qwen3 }
}
