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
