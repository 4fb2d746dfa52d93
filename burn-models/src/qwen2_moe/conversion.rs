//! From a checkpoint with a tensor for each expert to experts in two tensors.

use crate::layers::moe::expert_rules;
use patching_core::weights::{BuiltInConversion, ConversionError, ConversionMapping, WeightTransform};

fn mapping() -> Result<ConversionMapping, ConversionError> {
    let [gate_up, down] = expert_rules(["gate_proj", "up_proj", "down_proj"]);
    ConversionMapping::new([WeightTransform::from(gate_up), down.into()])
}

inventory::submit! { BuiltInConversion::new("qwen2_moe", mapping) }

#[cfg(test)]
mod tests {
    #[test]
    fn the_rules_are_valid() {
        assert_eq!(super::mapping().map(|mapping| mapping.len()), Ok(2));
    }
}
