//! From the names of published checkpoints, which are those of the first release.

use patching_core::weights::{BuiltInConversion, ConversionError, ConversionMapping, WeightRenaming};

/// Names there and here, in the order in which they are replaced: a later one may be the end of an earlier one.
const NAMES: [(&str, &str); 7] = [
    ("encoder.layer", "layers"),
    ("attention.attention.query", "attention.q_proj"),
    ("attention.attention.key", "attention.k_proj"),
    ("attention.attention.value", "attention.v_proj"),
    ("attention.output.dense", "attention.o_proj"),
    ("intermediate.dense", "mlp.fc1"),
    ("output.dense", "mlp.fc2"),
];

fn mapping() -> Result<ConversionMapping, ConversionError> {
    ConversionMapping::new(NAMES.map(|(there, here)| WeightRenaming::new(there, here)))
}

inventory::submit! { BuiltInConversion::new("vit", mapping) }

#[cfg(test)]
mod tests {
    #[test]
    fn the_rules_are_valid() {
        assert_eq!(super::mapping().map(|mapping| mapping.len()), Ok(super::NAMES.len()));
    }
}
