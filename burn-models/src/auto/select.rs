use super::AutoError;
use patching_core::weights::ConfigHead;
use std::path::Path;

macro_rules! families {
    ($($name:ident: $model_type:literal),* $(,)?) => {
        /// The families that can be loaded.
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

            /// What the names of the family's classes begin with.
            fn class_prefix(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),* }
            }
        }
    };
}

families!(
    Llama: "llama",
    Mistral: "mistral",
    Mixtral: "mixtral",
    Qwen2: "qwen2",
    Qwen2Moe: "qwen2_moe",
    Qwen3: "qwen3",
);

/// What a model has on top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Head {
    /// Nothing.
    None,
    /// A language model head.
    CausalLM,
    /// A classifier of sequences.
    SequenceClassification,
}

impl Head {
    /// All of them.
    pub const ALL: &'static [Self] = &[Self::None, Self::CausalLM, Self::SequenceClassification];

    /// What class names end with.
    fn class_suffix(self) -> &'static str {
        match self {
            Self::None => "Model",
            Self::CausalLM => "ForCausalLM",
            Self::SequenceClassification => "ForSequenceClassification",
        }
    }
}

impl Family {
    /// The name of the family's class that has `head`.
    pub fn class_name(self, head: Head) -> String {
        format!("{}{}", self.class_prefix(), head.class_suffix())
    }
}

/// The family and the head of a class name.
fn parse(class: &str) -> Option<(Family, Head)> {
    let all = Family::ALL.iter().flat_map(|family| Head::ALL.iter().map(move |head| (*family, *head)));
    all.into_iter().find(|(family, head)| class.strip_prefix(family.class_prefix()) == Some(head.class_suffix()))
}

impl Family {
    /// The family of the checkpoint in the folder `dir`: by `model_type`, or without one by `architectures`.
    ///
    /// # Errors
    ///
    /// When the config cannot be read or names none that is known.
    pub fn of(dir: impl AsRef<Path>) -> Result<Self, AutoError> {
        let dir = dir.as_ref();
        let head = ConfigHead::from_pretrained(dir)?;
        if let Some(found) = head.model_type {
            let family = Self::ALL.iter().find(|family| family.model_type() == found);
            let known = || Self::ALL.iter().map(|family| family.model_type()).collect();
            return family.copied().ok_or_else(|| AutoError::UnknownFamily { found, known: known() });
        }
        let classes = head.architectures.unwrap_or_default();
        let parsed = classes.iter().find_map(|class| parse(class));
        parsed.map(|(family, _)| family).ok_or_else(|| AutoError::NoFamily { path: dir.join("config.json") })
    }
}

impl Head {
    /// What the checkpoint in the folder `dir` was saved with, by the first of its `architectures`; nothing, if there
    /// is none.
    ///
    /// # Errors
    ///
    /// When the config cannot be read or names a class that is not known, or that is of another family than its
    /// `model_type`.
    pub fn of(dir: impl AsRef<Path>) -> Result<Self, AutoError> {
        let dir = dir.as_ref();
        let family = Family::of(dir)?;
        match ConfigHead::from_pretrained(dir)?.architectures.unwrap_or_default().first() {
            None => Ok(Self::None),
            Some(class) => match parse(class) {
                Some((of_class, head)) if of_class == family => Ok(head),
                Some(_) => Err(AutoError::OtherFamily { model_type: family.model_type(), architecture: class.clone() }),
                None => Err(AutoError::UnknownArchitecture {
                    found: class.clone(),
                    known: Self::ALL.iter().map(|head| family.class_name(*head)).collect(),
                }),
            },
        }
    }
}
