use super::Qwen2MoeConfig;
use patching_core::__private::inventory;
use patching_core::weights::{BuiltInConversion, Concatenate, ConversionMapping, MergeModulelist, WeightConverter};

inventory::submit! { BuiltInConversion::new(Qwen2MoeConfig::MODEL_TYPE, mapping) }

/// Published checkpoints hold the experts one by one, gate and up apart.
fn mapping() -> ConversionMapping {
    let gate_and_up = ["mlp.experts.*.gate_proj.weight", "mlp.experts.*.up_proj.weight"];
    let rules = [
        WeightConverter::new(gate_and_up, "mlp.experts.gate_up_proj")
            .with(MergeModulelist::dim(0))
            .with(Concatenate::dim(1).equal()),
        WeightConverter::new("mlp.experts.*.down_proj.weight", "mlp.experts.down_proj").with(MergeModulelist::dim(0)),
    ];
    // They are always right: a test sees that nothing falls away here.
    ConversionMapping::new(rules).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_rule_is_right() {
        assert_eq!(super::mapping().len(), 2);
    }
}
