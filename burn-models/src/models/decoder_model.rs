/// A family's decoder without a head: embedding, layers, a norm, and rotary positions that are computed once.
///
/// Given are the classes of its parts and what it records.
macro_rules! decoder_model {
    (
        $(#[$doc:meta])*
        $model:ident($config:ident) -> $output:ident;
        layers: $layer:ident,
        norm: $norm:ident,
        $(#[$rotary_doc:meta])*
        rotary_emb: $rotary:ident,
        recorded: { $($recorded:tt)* }
    ) => {
        $crate::layers::rotary_class!($(#[$rotary_doc])* $rotary, $config);

        $(#[$doc])*
        #[derive(burn::module::Module, Debug, CanRecordOutputs)]
        #[can_record_outputs($($recorded)*)]
        pub struct $model {
            /// `[vocabulary, hidden]`
            pub embed_tokens: burn::nn::Embedding,
            /// The layers.
            pub layers: Vec<Slot<$layer>>,
            /// After the last layer.
            pub norm: Slot<$norm>,
            /// Where positions become angles.
            pub rotary_emb: Slot<$rotary>,
            #[module(skip)]
            config: $config,
            recorders: OutputRecorders,
        }

        impl $model {
            /// Fresh parameters.
            pub fn new(config: &$config, init: &Init) -> Self {
                let (size, std) = (config.hidden_size, config.initializer_range);
                Self {
                    embed_tokens: $crate::layers::new_embedding(config.vocab_size, size, std, init.device()),
                    layers: (0..config.num_hidden_layers)
                        .map(|layer_idx| $layer::slot(config, layer_idx, init))
                        .collect(),
                    norm: $norm::slot(size, config.rms_norm_eps, init),
                    rotary_emb: $rotary::slot(config, init),
                    config: config.clone(),
                    recorders: OutputRecorders::default(),
                }
            }

            /// Runs the model; what `kwargs` and the config ask for is recorded.
            ///
            /// # Errors
            ///
            /// When the inputs do not fit, the config names an implementation that is not registered, something that
            /// was asked for cannot be recorded, or a router did not use the experts that the inputs force on it.
            #[merge_with_config_defaults]
            #[capture_outputs]
            pub fn forward(
                &self,
                inputs: impl Into<$crate::TextInputs>,
                kwargs: &ForwardKwargs,
            ) -> Result<$crate::$output, $crate::ForwardError> {
                let (mut hidden_states, mut context) = $crate::layers::LayerContext::for_decoder(
                    &self.config,
                    &self.embed_tokens,
                    inputs.into(),
                    kwargs,
                )?;
                let dtype = hidden_states.dtype();
                context.set_rotary(self.rotary_emb.forward(context.position_ids(), dtype));
                for (layer_idx, layer) in self.layers.iter().enumerate() {
                    hidden_states = layer.forward(hidden_states, &mut context);
                    context.end_layer(layer_idx)?;
                }
                let mut output = $crate::$output::new(self.norm.forward(hidden_states));
                output.cache = context.finish()?;
                Ok(output)
            }
        }

        $crate::models::base_model!($model, $config, $crate::$output);
    };
}
pub(crate) use decoder_model;
