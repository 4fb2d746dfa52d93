//! The weights that lie in files as `[in, out]`, as Burn has them, unlike those of other linear maps.

use patching_core::weights::{LayoutRules, ParameterLayout};

/// The fields of the reference's `Conv1D` class.
const CONV1D: [&str; 4] = ["c_attn.weight", "q_attn.weight", "c_proj.weight", "c_fc.weight"];

pub(super) fn layouts() -> LayoutRules {
    CONV1D.into_iter().fold(LayoutRules::default(), |rules, path| rules.path(path, ParameterLayout::same()))
}
