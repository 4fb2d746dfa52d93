//! Module classes that every family with experts has alike but for their names and the names of a config's fields.

/// Where the experts of each token are chosen.
///
/// Given are the field that says how many experts there are, whether the scores of a token add up to 1, and what is made
/// of scores (in f32) for the experts.
macro_rules! router_class {
    (
        $(#[$doc:meta])* $class:ident, $config:ident { $num_experts:ident },
        normalize: $normalize:expr,
        scores: $scores:expr $(,)?
    ) => {
        $(#[$doc])*
        #[derive(burn::module::Module, Debug)]
        pub struct $class {
            /// `[experts, hidden]`
            pub weight: burn::module::Param<burn::tensor::Tensor<2>>,
            #[module(skip)]
            top_k: usize,
            #[module(skip)]
            normalize: bool,
            #[module(skip)]
            layer_idx: usize,
        }

        #[patching_core::module_class]
        impl $class {
            /// Fresh parameters for layer `layer_idx`.
            pub fn new(config: &$config, layer_idx: usize, init: &patching_core::class::Init) -> Self {
                let normal = burn::module::Initializer::Normal { mean: 0.0, std: config.initializer_range };
                let normalize: fn(&$config) -> bool = $normalize;
                Self {
                    weight: normal.init([config.$num_experts, config.hidden_size], init.device()),
                    top_k: config.num_experts_per_tok,
                    normalize: normalize(config),
                    layer_idx,
                }
            }

            /// `[tokens, hidden]` to the raw logits `[tokens, experts]`, how much each chosen expert counts, and which
            /// they are, both `[tokens, top k]`. They are the most probable ones, unless the call is forced to others.
            pub fn forward(
                &self,
                hidden_states: burn::tensor::Tensor<2>,
                context: &mut $crate::layers::LayerContext,
            ) -> (burn::tensor::Tensor<2>, burn::tensor::Tensor<2>, burn::tensor::Tensor<2, burn::tensor::Int>) {
                let forced = context.forced_experts(self.layer_idx, &hidden_states.device());
                let logits = $crate::layers::moe::router_logits(self.weight.val(), hidden_states);
                let (scores, indices) =
                    $crate::layers::moe::choose_experts(logits.clone(), self.top_k, self.normalize, forced);
                let scores_of: fn(burn::tensor::Tensor<2>, burn::tensor::DType) -> burn::tensor::Tensor<2> = $scores;
                let scores = scores_of(scores, logits.dtype());
                (logits, scores, indices)
            }
        }
    };
}
pub(crate) use router_class;

/// All experts of a layer in two tensors.
///
/// Given are the fields that say how many experts there are and how large they are inside.
macro_rules! experts_class {
    ($(#[$doc:meta])* $class:ident, $config:ident { $num_experts:ident, $intermediate_size:ident }) => {
        $(#[$doc])*
        #[derive(burn::module::Module, Debug)]
        pub struct $class {
            /// Gate above up, `[experts, 2 * intermediate, hidden]`
            pub gate_up_proj: burn::module::Param<burn::tensor::Tensor<3>>,
            /// `[experts, hidden, intermediate]`
            pub down_proj: burn::module::Param<burn::tensor::Tensor<3>>,
            #[module(skip)]
            activation: $crate::layers::Activation,
        }

        #[patching_core::module_class]
        impl $class {
            /// Fresh parameters.
            pub fn new(config: &$config, init: &patching_core::class::Init) -> Self {
                let (experts, hidden, size) = (config.$num_experts, config.hidden_size, config.$intermediate_size);
                let normal = burn::module::Initializer::Normal { mean: 0.0, std: config.initializer_range };
                Self {
                    gate_up_proj: normal.init([experts, 2 * size, hidden], init.device()),
                    down_proj: normal.init([experts, hidden, size], init.device()),
                    activation: config.hidden_act,
                }
            }

            /// `[tokens, hidden]` to the same, by the experts `[tokens, top k]`, each times its weight.
            pub fn forward(
                &self,
                hidden_states: burn::tensor::Tensor<2>,
                top_k_index: burn::tensor::Tensor<2, burn::tensor::Int>,
                top_k_weights: burn::tensor::Tensor<2>,
                context: &$crate::layers::LayerContext,
            ) -> burn::tensor::Tensor<2> {
                context.experts().mix($crate::layers::experts::Experts {
                    hidden_states,
                    top_k_index,
                    top_k_weights,
                    gate_up_proj: self.gate_up_proj.val(),
                    down_proj: self.down_proj.val(),
                    activation: self.activation,
                })
            }
        }
    };
}
pub(crate) use experts_class;
