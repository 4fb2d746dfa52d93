//! `#[merge_with_config_defaults]`.
mod parts;
use parts::*;

#[derive(Module, Debug)]
struct Model {
    #[module(skip)]
    config: Config,
}

impl Model {
    #[merge_with_config_defaults]
    fn nothing(&self, x: Tensor<2>) -> Tensor<2> {
        let use_cache = Some(true);
        let _ = use_cache;
        x
    }

    #[merge_with_config_defaults]
    fn not_optional(&self, use_cache: bool) -> bool {
        use_cache
    }

    #[merge_with_config_defaults(width)]
    fn named_not_optional(&self, width: &Option<usize>) -> Option<usize> {
        *width
    }

    #[merge_with_config_defaults(widht, width, width, cfg = self.config)]
    fn no_such_argument(&self, width: Option<usize>) -> Option<usize> {
        width
    }

    #[merge_with_config_defaults]
    fn strategy(&self, vision_feature_select_strategy: Option<String>) -> Option<String> {
        vision_feature_select_strategy
    }

    #[merge_with_config_defaults]
    fn not_in_the_config(&self, vision_feature_layer: Option<usize>) -> Option<usize> {
        vision_feature_layer
    }

    #[merge_with_config_defaults]
    fn two_requests(&self, text: &ForwardKwargs, vision: &ForwardKwargs) -> bool {
        text == vision
    }

    #[merge_with_config_defaults]
    fn without_self(use_cache: Option<bool>) -> Option<bool> {
        use_cache
    }
}

fn main() {}
