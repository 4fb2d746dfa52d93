//! Module classes that every family has alike but for their names: a class is replaced and recorded by its name, so each
//! family has its own.

/// A norm by the root of the mean square.
macro_rules! rms_norm_class {
    ($(#[$doc:meta])* $class:ident) => {
        $(#[$doc])*
        #[derive(burn::module::Module, Debug)]
        pub struct $class {
            /// `[size]`
            pub weight: burn::module::Param<burn::tensor::Tensor<1>>,
            variance_epsilon: f64,
        }

        #[patching_core::module_class]
        impl $class {
            /// A weight of ones.
            pub fn new(size: usize, epsilon: f64, init: &patching_core::class::Init) -> Self {
                let weight = burn::module::Initializer::Ones.init([size], init.device());
                Self { weight, variance_epsilon: epsilon }
            }

            /// `[batch, seq, size]` to the same.
            pub fn forward(&self, hidden_states: burn::tensor::Tensor<3>) -> burn::tensor::Tensor<3> {
                $crate::layers::rms_norm(hidden_states, self.weight.val(), self.variance_epsilon)
            }
        }
    };
}
pub(crate) use rms_norm_class;

/// Where positions become angles.
macro_rules! rotary_class {
    ($(#[$doc:meta])* $class:ident, $config:ident) => {
        $(#[$doc])*
        #[derive(burn::module::Module, Debug)]
        pub struct $class {
            #[module(skip)]
            frequencies: Vec<f32>,
        }

        #[patching_core::module_class]
        impl $class {
            /// The frequencies that the config describes; no parameters.
            pub fn new(config: &$config, _init: &patching_core::class::Init) -> Self {
                let head_dim = $crate::config::DecoderConfig::head_dim(config);
                Self { frequencies: $crate::layers::inverse_frequencies(&config.rope_parameters, head_dim) }
            }

            /// `[batch or 1, seq]` to cosines and sines, `[batch or 1, seq, rotary / 2]` each.
            pub fn forward(
                &self,
                position_ids: burn::tensor::Tensor<2, burn::tensor::Int>,
                dtype: burn::tensor::DType,
            ) -> (burn::tensor::Tensor<3>, burn::tensor::Tensor<3>) {
                $crate::layers::rotary_tables(&self.frequencies, position_ids, dtype)
            }
        }
    };
}
pub(crate) use rotary_class;

/// Attention of patches to each other, with a bias for queries, keys and values where the config says so.
macro_rules! patch_attention_class {
    ($(#[$doc:meta])* $class:ident, $config:ident) => {
        $(#[$doc])*
        #[derive(burn::module::Module, Debug)]
        pub struct $class {
            /// `[hidden, heads * size]`
            pub q_proj: burn::nn::Linear,
            /// `[hidden, heads * size]`
            pub k_proj: burn::nn::Linear,
            /// `[hidden, heads * size]`
            pub v_proj: burn::nn::Linear,
            /// `[heads * size, hidden]`
            pub o_proj: burn::nn::Linear,
            #[module(skip)]
            shape: $crate::layers::attention::AttentionShape,
        }

        #[patching_core::module_class]
        impl $class {
            /// Fresh parameters for layer `layer_idx`.
            pub fn new(config: &$config, layer_idx: usize, init: &patching_core::class::Init) -> Self {
                let (heads, head_dim) = (config.num_attention_heads, config.head_dim());
                let (hidden, inner, std) = (config.hidden_size, heads * head_dim, config.initializer_range);
                let inward = || $crate::layers::new_linear(hidden, inner, config.qkv_bias, std, init.device());
                Self {
                    q_proj: inward(),
                    k_proj: inward(),
                    v_proj: inward(),
                    o_proj: $crate::layers::new_linear(inner, hidden, true, std, init.device()),
                    shape: $crate::layers::attention::AttentionShape::plain(layer_idx, heads, head_dim),
                }
            }

            /// `[batch, seq, hidden]` to the same, and the weights `[batch, heads, query, key]` if they are recorded.
            pub fn forward(
                &self,
                hidden_states: burn::tensor::Tensor<3>,
                context: &mut $crate::layers::LayerContext,
            ) -> (burn::tensor::Tensor<3>, Option<burn::tensor::Tensor<4>>) {
                let projections = [&self.q_proj, &self.k_proj, &self.v_proj];
                let [query, key, value] = $crate::layers::attention::project(&self.shape, projections, hidden_states);
                let (output, weights) =
                    $crate::layers::attention::self_attention(&self.shape, query, key, value, context);
                ($crate::layers::linear(&self.o_proj, output), weights)
            }
        }
    };
}
pub(crate) use patch_attention_class;

/// Where patches become vectors.
macro_rules! patch_embeddings_class {
    ($(#[$doc:meta])* $class:ident, $config:ident) => {
        $(#[$doc])*
        #[derive(burn::module::Module, Debug)]
        pub struct $class {
            /// `[hidden, channels, height, width]`
            pub projection: burn::nn::conv::Conv2d,
        }

        #[patching_core::module_class]
        impl $class {
            /// Fresh parameters.
            pub fn new(config: &$config, init: &patching_core::class::Init) -> Self {
                let (grid, std) = (config.grid(), config.initializer_range);
                let channels = [grid.channels, config.hidden_size];
                let projection = $crate::layers::new_patch_projection(channels, grid.patch, true, std, init.device());
                Self { projection }
            }

            /// Images `[batch, channels, height, width]` to `[batch, patches, hidden]`.
            pub fn forward(&self, pixel_values: burn::tensor::Tensor<4>) -> burn::tensor::Tensor<3> {
                $crate::layers::patch_projection(&self.projection, pixel_values)
            }
        }
    };
}
pub(crate) use patch_embeddings_class;
