use patching_core::weights::{Concatenate, MergeModulelist, WeightConverter};

/// How the tensors of single experts, `gate`, `up` and `down`, become `gate_up_proj` `[experts, 2 * intermediate, hidden]`
/// and `down_proj` `[experts, hidden, intermediate]`.
pub(crate) fn expert_rules([gate, up, down]: [&str; 3]) -> [WeightConverter; 2] {
    let of = |name: &str| format!("mlp.experts.*.{name}.weight");
    let gate_up = WeightConverter::new([of(gate), of(up)], "mlp.experts.gate_up_proj")
        .with(MergeModulelist::dim(0))
        .with(Concatenate::dim(1).equal());
    let down = WeightConverter::new(of(down), "mlp.experts.down_proj").with(MergeModulelist::dim(0));
    [gate_up, down]
}
