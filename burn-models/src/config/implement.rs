//! What the configs of all families do alike.

/// Reads and writes a config struct in the spelling of any age; `adapt` may change the fields before they are read.
macro_rules! config_json {
    ($config:ident, |$fields:ident| $adapt:expr) => {
        impl<'de> serde::Deserialize<'de> for $config {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use serde::de::Error;
                let mut fields = $crate::config::normalized(serde_json::Map::deserialize(deserializer)?);
                fields.entry("model_type").or_insert_with(|| Self::MODEL_TYPE.into());
                {
                    let $fields = &mut fields;
                    $adapt;
                }
                let mut track = serde_path_to_error::Track::new();
                let fields = serde_json::Value::Object(fields);
                $config::deserialize(serde_path_to_error::Deserializer::new(fields, &mut track))
                    .map_err(|error| D::Error::custom(format_args!("`{}`: {error}", track.path())))
            }
        }

        impl serde::Serialize for $config {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $config::serialize(self, serializer)
            }
        }
    };
}
pub(crate) use config_json;

/// What a call falls back to, for a config with a `general` part.
macro_rules! config_defaults {
    ($config:ident, |$this:ident| $use_cache:expr) => {
        #[diagnostic::do_not_recommend]
        impl patching_core::capture::ConfigDefaults for $config {
            fn output_flag(&self, key: &str) -> Option<patching_core::capture::Flag> {
                self.general.output_flag(key)
            }
            fn return_dict(&self) -> Option<bool> {
                self.general.return_dict
            }
            fn tie_last_hidden_states(&self) -> Option<bool> {
                self.general.tie_last_hidden_states
            }
            fn use_cache(&self) -> Option<bool> {
                let $this = self;
                $use_cache
            }
            fn is_causal(&self) -> Option<bool> {
                self.general.extra.get("is_causal").and_then(serde_json::Value::as_bool)
            }
        }
    };
}
pub(crate) use config_defaults;

/// Implements reading, writing and the defaults of a call for a config struct that has a `general` part, a `Default`, and
/// a method `check` that says what does not fit.
///
/// Given are the struct, its `model_type`, what `use_cache` falls back to (`None` for models without a cache), and, after
/// `parts`, the fields that are configs of models inside. A part of a composite model says in `nested_in` where its
/// config lies there.
macro_rules! model_config {
    (
        $config:ident,
        $model_type:literal,
        use_cache: |$this:ident| $use_cache:expr
        $(, parts: [$($part:ident),*])?
        $(, nested_in: { $($outer:literal => $field:literal),* })?
        $(, adapt: |$fields:ident| $adapt:expr)?
    ) => {
        impl $config {
            /// The `model_type` of this family.
            pub const MODEL_TYPE: &'static str = $model_type;

            /// Checks that a model can be built from this config, without building anything.
            ///
            /// The attention implementation is left to the construction: until then it may be replaced by another.
            ///
            /// # Errors
            ///
            /// Names the first field that does not fit.
            pub fn validate(&self) -> Result<(), $crate::config::ConfigError> {
                $($(self.$part.validate()?;)*)?
                self.check()
            }
        }

        $crate::config::config_json!($config, |fields| {
            let _ = &fields;
            $({
                let $fields = fields;
                $adapt;
            })?
        });
        $crate::config::config_defaults!($config, |$this| $use_cache);

        impl patching_core::weights::PretrainedConfig for $config {
            const MODEL_TYPES: &'static [&'static str] = &[$model_type];

            fn set_attn_implementation(&mut self, name: &str) {
                $($(patching_core::weights::PretrainedConfig::set_attn_implementation(&mut self.$part, name);)*)?
                self.general.attn_implementation = Some(name.to_owned());
            }

            fn attn_implementation(&self) -> Option<&str> {
                self.general.attn_implementation.as_deref()
            }

            $(fn nested_in(model_type: &str) -> Option<&'static str> {
                match model_type {
                    $($outer => Some($field),)*
                    _ => None,
                }
            })?

            fn validate(&self) -> Result<(), String> {
                Self::validate(self).map_err(|error| error.to_string())
            }

            fn validate_attn_implementation(&self) -> Result<(), String> {
                $($(patching_core::weights::PretrainedConfig::validate_attn_implementation(&self.$part)?;)*)?
                let name = self.general.attn_implementation.as_deref();
                $crate::layers::attention::AttentionInterface::check(name).map_err(|error| error.to_string())
            }
        }

        impl $crate::config::ModelConfig for $config {
            fn general(&self) -> &$crate::config::GeneralConfig {
                &self.general
            }
            fn general_mut(&mut self) -> &mut $crate::config::GeneralConfig {
                &mut self.general
            }
        }
    };
}
pub(crate) use model_config;

/// Implements reading, the defaults of a call, and [`DecoderConfig`] for a config struct with the usual fields.
///
/// Given are the struct, its `model_type`, and the methods that are not the field of the same name.
macro_rules! decoder_config {
    ($config:ident, $model_type:literal, { $($special:item)* }) => {
        impl $config {
            /// The `model_type` of this family.
            pub const MODEL_TYPE: &'static str = $model_type;

            /// Checks that a model can be built from this config, without building anything.
            ///
            /// The attention implementation is left to the construction: until then it may be replaced by another.
            ///
            /// # Errors
            ///
            /// Names the first field that does not fit.
            pub fn validate(&self) -> Result<(), $crate::config::ConfigError> {
                self.validate_family()?;
                $crate::config::validate_decoder(self)
            }
        }

        $crate::config::config_json!($config, |fields| {
            $crate::config::set_default_theta(fields, Self::default().rope_parameters.rope_theta);
        });

        impl patching_core::weights::PretrainedConfig for $config {
            const MODEL_TYPES: &'static [&'static str] = &[$model_type];

            fn set_attn_implementation(&mut self, name: &str) {
                self.general.attn_implementation = Some(name.to_owned());
            }

            fn attn_implementation(&self) -> Option<&str> {
                self.general.attn_implementation.as_deref()
            }

            fn set_experts_implementation(&mut self, name: &str) -> Result<(), String> {
                $crate::config::check_experts(self, Some(name)).map_err(|error| error.to_string())?;
                self.general.experts_implementation = Some(name.to_owned());
                Ok(())
            }

            fn experts_implementation(&self) -> Option<&str> {
                self.general.experts_implementation.as_deref()
            }

            fn validate_experts_implementation(&self) -> Result<(), String> {
                let name = self.general.experts_implementation.as_deref();
                $crate::config::check_experts(self, name).map_err(|error| error.to_string())
            }

            fn validate(&self) -> Result<(), String> {
                Self::validate(self).map_err(|error| error.to_string())
            }

            fn validate_attn_implementation(&self) -> Result<(), String> {
                let name = self.general.attn_implementation.as_deref();
                $crate::layers::attention::AttentionInterface::check(name).map_err(|error| error.to_string())
            }
        }

        $crate::config::config_defaults!($config, |config| Some(config.use_cache));

        impl $crate::config::ModelConfig for $config {
            fn general(&self) -> &$crate::config::GeneralConfig {
                &self.general
            }
            fn general_mut(&mut self) -> &mut $crate::config::GeneralConfig {
                &mut self.general
            }
        }

        impl $crate::config::DecoderConfig for $config {
            fn vocab_size(&self) -> usize {
                self.vocab_size
            }
            fn hidden_size(&self) -> usize {
                self.hidden_size
            }
            fn intermediate_size(&self) -> usize {
                self.intermediate_size
            }
            fn num_hidden_layers(&self) -> usize {
                self.num_hidden_layers
            }
            fn num_attention_heads(&self) -> usize {
                self.num_attention_heads
            }
            fn num_key_value_heads(&self) -> usize {
                self.num_key_value_heads.unwrap_or(self.num_attention_heads)
            }
            fn hidden_act(&self) -> $crate::layers::Activation {
                self.hidden_act
            }
            fn max_position_embeddings(&self) -> usize {
                self.max_position_embeddings
            }
            fn initializer_range(&self) -> f64 {
                self.initializer_range
            }
            fn rms_norm_eps(&self) -> f64 {
                self.rms_norm_eps
            }
            fn rope_parameters(&self) -> &$crate::config::RopeParameters {
                &self.rope_parameters
            }
            fn tie_word_embeddings(&self) -> bool {
                self.tie_word_embeddings
            }
            fn use_cache(&self) -> bool {
                self.use_cache
            }
            fn pad_token_id(&self) -> Option<i64> {
                self.pad_token_id
            }
            fn bos_token_id(&self) -> Option<i64> {
                self.bos_token_id
            }
            fn eos_token_id(&self) -> Option<&$crate::config::TokenIds> {
                self.eos_token_id.as_ref()
            }
            $($special)*
        }
    };
}
pub(crate) use decoder_config;
