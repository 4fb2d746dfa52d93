//! The names that the norms had in the first release, and have in files from then.

use patching_core::weights::{BuiltInConversion, ConversionError, ConversionMapping, WeightRenaming};

fn mapping() -> Result<ConversionMapping, ConversionError> {
    ConversionMapping::new([
        WeightRenaming::new("LayerNorm.gamma", "LayerNorm.weight").legacy(),
        WeightRenaming::new("LayerNorm.beta", "LayerNorm.bias").legacy(),
    ])
}

inventory::submit! { BuiltInConversion::new("bert", mapping) }

#[cfg(test)]
mod tests {
    #[test]
    fn the_rules_are_valid() {
        assert_eq!(super::mapping().map(|mapping| mapping.len()), Ok(2));
    }
}
