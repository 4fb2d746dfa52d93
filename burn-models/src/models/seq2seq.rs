//! What models of an encoder and a decoder have alike, written by macros.

/// Makes a struct an [`EncoderDecoder`](super::EncoderDecoder) that loads, saves, and is known by its class: one with a
/// `new` and a `forward`.
///
/// Given are the paths of its config and of both parts, and how the mask of the source is found; and the path of the
/// embedding, if it lies beside the parts and not in them. A part may then have one of its own all the same.
macro_rules! encoder_decoder {
    (
        $model:ident($config_type:ident at $($config:ident).+) => $output:ty;
        encoder: $encoder:ident at $($encoder_path:ident).+,
        decoder: $decoder:ident at $($decoder_path:ident).+,
        prefix: $prefix:literal,
        is_base: $is_base:literal,
        inputs: $names:expr,
        source_mask: |$source:ident| $mask:expr
        $(, embedding: $($table:ident).+)?
        $(, generates: $generates:ident)?
        $(, pretrained: { $($pretrained:item)* })?
    ) => {
        impl $model {
            /// Chooses the attention implementation of a live model.
            ///
            /// # Errors
            ///
            /// An unknown name is an error that lists the choices.
            pub fn set_attn_implementation(&mut self, name: &str) -> Result<(), $crate::config::ConfigError> {
                use $crate::models::Tower;
                self.$($encoder_path).+.set_tower_attention(name)?;
                self.$($decoder_path).+.set_tower_attention(name)?;
                self.$($config).+.general.attn_implementation = Some(name.to_owned());
                Ok(())
            }
        }

        impl patching_core::weights::PreTrainedModel for $model {
            type Config = $config_type;
            const CLASS_NAME: &'static str = stringify!($model);
            const BASE_MODEL_PREFIX: &'static str = $prefix;

            fn new(config: &$config_type, init: &Init) -> Self {
                Self::new(config, init)
            }

            fn config(&self) -> &$config_type {
                &self.$($config).+
            }

            $($($pretrained)*)?
        }

        impl $crate::models::EncoderDecoder for $model {
            type Encoder = $encoder;
            type Decoder = $decoder;

            fn encoder(&self) -> &$encoder {
                &self.$($encoder_path).+
            }

            fn decoder(&self) -> &$decoder {
                &self.$($decoder_path).+
            }

            fn source_mask(
                $source: &<$encoder as $crate::models::Tower>::Inputs,
            ) -> Option<burn::tensor::Tensor<2, burn::tensor::Int>> {
                $mask
            }

            $(
                fn for_encoder(&self, source: $crate::TextInputs) -> Result<$crate::TextInputs, $crate::ForwardError> {
                    let own = $crate::models::EncoderDecoder::encoder(self).embed_tokens.as_ref();
                    $crate::layers::embedded(source, own.unwrap_or(&self.$($table).+))
                }

                fn for_decoder(&self, decoder: $crate::TextInputs) -> Result<$crate::TextInputs, $crate::ForwardError> {
                    let own = $crate::models::EncoderDecoder::decoder(self).embed_tokens.as_ref();
                    $crate::layers::embedded(decoder, own.unwrap_or(&self.$($table).+))
                }
            )?

            fn decoder_start_token_id(&self) -> Option<i64> {
                self.$($config).+.decoder_start_token_id
            }

            fn pad_token_id(&self) -> Option<i64> {
                self.$($config).+.pad_token_id
            }

            fn eos_token_id(&self) -> Option<&$crate::config::TokenIds> {
                self.$($config).+.eos_token_id.as_ref()
            }
        }

        impl $crate::models::Model for $model {
            type Inputs = $crate::Seq2SeqInputs<<$encoder as $crate::models::Tower>::Inputs>;
            type Output = $output;
            const INPUT_NAMES: &'static [&'static str] = $names;
            const IS_BASE: bool = $is_base;

            fn run(&self, inputs: Self::Inputs, kwargs: &ForwardKwargs) -> Result<$output, $crate::ForwardError> {
                self.forward(inputs, kwargs)
            }

            fn capture_plan(&self, kwargs: &ForwardKwargs) -> Result<patching_core::capture::CapturePlan, CaptureError> {
                let paths = [stringify!($($encoder_path).+), stringify!($($decoder_path).+)];
                $crate::models::encoder_decoder_plan(self, paths, kwargs)
            }

            fn recordable_keys() -> Vec<String> {
                $crate::models::encoder_decoder_keys::<Self>()
            }

            fn set_attn_implementation(&mut self, name: &str) -> Result<(), $crate::config::ConfigError> {
                Self::set_attn_implementation(self, name)
            }

            $($crate::models::generate_any!($generates);)?
        }

        $crate::auto::model_class!($model);
    };
}
pub(crate) use encoder_decoder;

/// What a language model head over an [`EncoderDecoder`](super::EncoderDecoder) does beside its `forward`: it generates.
macro_rules! seq2seq_lm {
    ($head:ident: $source:ty) => {
        impl $crate::models::Seq2SeqLM for $head {
            fn forward_seq2seq(
                &self,
                inputs: $crate::Seq2SeqInputs<$source>,
                kwargs: &ForwardKwargs,
            ) -> Result<$crate::Seq2SeqLMOutput, $crate::ForwardError> {
                self.forward(inputs, kwargs)
            }
        }

        impl $head {
            /// Answers what the encoder reads; see [`generate_seq2seq`](fn@crate::generation::generate_seq2seq).
            ///
            /// # Errors
            ///
            /// When the inputs or the generation config do not fit, or a forward pass fails.
            pub fn generate(
                &self,
                inputs: impl Into<$crate::Seq2SeqInputs<$source>>,
                config: &$crate::generation::GenerationConfig,
                kwargs: &ForwardKwargs,
            ) -> Result<$crate::generation::GenerateOutput<$crate::Seq2SeqLMOutput>, $crate::generation::GenerateError>
            {
                $crate::generation::generate_seq2seq(self, inputs, config, kwargs)
            }
        }
    };
}
pub(crate) use seq2seq_lm;
