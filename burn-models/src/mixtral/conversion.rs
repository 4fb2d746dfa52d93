use super::MixtralConfig;
use patching_core::__private::inventory;
use patching_core::weights::{
    BuiltInConversion, Concatenate, ConversionMapping, MergeModulelist, WeightConverter, WeightRenaming,
    WeightTransform,
};

inventory::submit! { BuiltInConversion::new(MixtralConfig::MODEL_TYPE, mapping) }

/// Published checkpoints call the block `block_sparse_moe`, and hold the experts one by one: `w1` is the gate, `w3` up,
/// `w2` down.
fn mapping() -> ConversionMapping {
    let gate_and_up = ["mlp.experts.*.w1.weight", "mlp.experts.*.w3.weight"];
    let rules: [WeightTransform; 3] = [
        WeightRenaming::new("block_sparse_moe", "mlp").into(),
        WeightConverter::new(gate_and_up, "mlp.experts.gate_up_proj")
            .with(MergeModulelist::dim(0))
            .with(Concatenate::dim(1).equal())
            .into(),
        WeightConverter::new("mlp.experts.*.w2.weight", "mlp.experts.down_proj").with(MergeModulelist::dim(0)).into(),
    ];
    // They are always right: a test sees that nothing falls away here.
    ConversionMapping::new(rules).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_rule_is_right() {
        assert_eq!(super::mapping().len(), 3);
    }
}
