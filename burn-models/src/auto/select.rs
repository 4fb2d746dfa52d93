use super::{AutoError, ModelClass};
use std::path::Path;

macro_rules! families {
    ($($name:ident: $model_type:literal),* $(,)?) => {
        /// The families of text models, for the types that are enums over them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Family {
            $(#[doc = concat!("`model_type` `", $model_type, "`")] $name,)*
        }

        impl Family {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The `model_type` in `config.json`.
            pub fn model_type(self) -> &'static str {
                match self { $(Self::$name => $model_type),* }
            }
        }
    };
}

families!(
    Bert: "bert",
    Gpt2: "gpt2",
    Llama: "llama",
    Mistral: "mistral",
    Mixtral: "mixtral",
    Qwen2: "qwen2",
    Qwen2Moe: "qwen2_moe",
    Qwen3: "qwen3",
);

impl Family {
    /// The family of the checkpoint in the folder `dir`: by `model_type`, or without one by `architectures`.
    ///
    /// # Errors
    ///
    /// When the config cannot be read or names none that is known; [`AutoError::NoTextModel`] for a family that only
    /// [`AnyModel`](super::AnyModel) knows.
    pub fn of(dir: impl AsRef<Path>) -> Result<Self, AutoError> {
        let found = ModelClass::family_of(dir)?;
        let family = Self::ALL.iter().find(|family| family.model_type() == found);
        let known = || Self::ALL.iter().map(|family| family.model_type()).collect();
        family.copied().ok_or_else(|| AutoError::NoTextModel { found, known: known() })
    }
}
