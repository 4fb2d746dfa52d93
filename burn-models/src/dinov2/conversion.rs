//! From the names of published checkpoints, which are those of the first release.

use patching_core::weights::{
    BuiltInConversion, Chunk, ConversionError, ConversionMapping, WeightConverter, WeightRenaming, WeightTransform,
};

fn mapping() -> Result<ConversionMapping, ConversionError> {
    let gated = WeightConverter::new("mlp.weights_in", ["mlp.gate_proj", "mlp.up_proj"]).with(Chunk::dim(0));
    ConversionMapping::new([
        WeightTransform::from(WeightRenaming::new("attention.attention.query", "attention.q_proj")),
        WeightRenaming::new("attention.attention.key", "attention.k_proj").into(),
        WeightRenaming::new("attention.attention.value", "attention.v_proj").into(),
        WeightRenaming::new("attention.output.dense", "attention.o_proj").into(),
        // only a feed-forward block with a gate has these
        gated.optional().into(),
        WeightRenaming::new("mlp.weights_out", "mlp.down_proj").optional().into(),
    ])
}

inventory::submit! { BuiltInConversion::new("dinov2", mapping) }

#[cfg(test)]
mod tests {
    #[test]
    fn the_rules_are_valid() {
        assert_eq!(super::mapping().map(|mapping| mapping.len()), Ok(6));
    }
}
