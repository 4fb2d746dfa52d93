//! From a checkpoint with a tensor for each expert, under the names of the first release, to experts in two tensors.

use crate::layers::moe::expert_rules;
use patching_core::weights::{BuiltInConversion, ConversionError, ConversionMapping, WeightRenaming, WeightTransform};

fn mapping() -> Result<ConversionMapping, ConversionError> {
    let [gate_up, down] = expert_rules(["w1", "w3", "w2"]);
    let block = WeightRenaming::new("block_sparse_moe", "mlp");
    ConversionMapping::new([WeightTransform::from(block), gate_up.into(), down.into()])
}

inventory::submit! { BuiltInConversion::new("mixtral", mapping) }

#[cfg(test)]
mod tests {
    #[test]
    fn the_rules_are_valid() {
        assert_eq!(super::mapping().map(|mapping| mapping.len()), Ok(3));
    }
}
