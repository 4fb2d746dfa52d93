/// Makes a struct with several base models inside one that loads, saves, and is known by its class: one with a `new`, a
/// `forward`, and a config of its own.
///
/// Given are the path of the config and, for each part, a name, the prefix of what it records in the output of the whole,
/// its class and its path. A request is divided among the parts by the method `requests`.
macro_rules! composite {
    (
        $model:ident($config_type:ident at $($config:ident).+): $inputs:ty => $output:ty;
        parts: { $($part:ident($prefix:expr): $tower:ident at $($path:ident).+),+ },
        prefix: $base:literal,
        is_base: $is_base:literal,
        inputs: $names:expr
        $(, generates: $generates:ident)?
        $(, pretrained: { $($pretrained:item)* })?
    ) => {
        impl $model {
            /// The request to each part.
            fn requests(
                &self,
                kwargs: &ForwardKwargs,
            ) -> Result<[ForwardKwargs; [$(stringify!($part)),+].len()], CaptureError> {
                let parts = [$(patching_core::capture::Part::of::<$tower>($prefix)),+];
                kwargs.split(stringify!($model), &self.$($config).+, &parts)
            }

            /// Chooses the attention implementation of a live model, in all of its parts.
            ///
            /// # Errors
            ///
            /// An unknown name is an error that lists the choices.
            pub fn set_attn_implementation(&mut self, name: &str) -> Result<(), $crate::config::ConfigError> {
                $($crate::models::Tower::set_tower_attention(&mut self.$($path).+, name)?;)+
                patching_core::weights::PretrainedConfig::set_attn_implementation(&mut self.$($config).+, name);
                Ok(())
            }
        }

        impl patching_core::weights::PreTrainedModel for $model {
            type Config = $config_type;
            const CLASS_NAME: &'static str = stringify!($model);
            const BASE_MODEL_PREFIX: &'static str = $base;

            fn new(config: &$config_type, init: &Init) -> Self {
                Self::new(config, init)
            }

            fn config(&self) -> &$config_type {
                &self.$($config).+
            }

            $($($pretrained)*)?
        }

        impl $crate::models::Model for $model {
            type Inputs = $inputs;
            type Output = $output;
            const INPUT_NAMES: &'static [&'static str] = $names;
            const IS_BASE: bool = $is_base;

            fn run(&self, inputs: $inputs, kwargs: &ForwardKwargs) -> Result<$output, $crate::ForwardError> {
                self.forward(inputs, kwargs)
            }

            fn capture_plan(&self, kwargs: &ForwardKwargs) -> Result<patching_core::capture::CapturePlan, CaptureError> {
                let [$($part),+] = self.requests(kwargs)?;
                let parts = [$((
                    $prefix,
                    concat!($("." , stringify!($path)),+).trim_start_matches('.'),
                    $crate::models::Tower::tower_plan(&self.$($path).+, &$part)?,
                )),+];
                Ok(patching_core::capture::CapturePlan::of_parts::<$output>(stringify!($model), parts))
            }

            fn recordable_keys() -> Vec<String> {
                $crate::models::each_once([$($crate::models::declared_keys::<$tower>()),+])
            }

            fn set_attn_implementation(&mut self, name: &str) -> Result<(), $crate::config::ConfigError> {
                Self::set_attn_implementation(self, name)
            }

            $($crate::models::generate_any!($generates);)?
        }

        $crate::auto::model_class!($model);
    };
}
pub(crate) use composite;
