//! From the names of published checkpoints, in which the head is a part of the language model.

use patching_core::weights::{BuiltInConversion, ConversionError, ConversionMapping, WeightRenaming};

/// Names there and here, in the order in which they are replaced.
const NAMES: [(&str, &str); 4] = [
    (r"^language_model\.lm_head", "lm_head"),
    (r"^language_model\.model", "model.language_model"),
    ("^vision_tower", "model.vision_tower"),
    ("^multi_modal_projector", "model.multi_modal_projector"),
];

fn mapping() -> Result<ConversionMapping, ConversionError> {
    // files of the first release only; others have what this gives
    let tower = r"^vision_tower\.vision_model\.";
    let tower = WeightRenaming::regex(tower, "vision_tower.")?.with_inverse(tower, "vision_tower.vision_model.");
    let mut rules = vec![tower];
    for (there, here) in NAMES {
        rules.push(WeightRenaming::regex(there, here)?);
    }
    ConversionMapping::new(rules)
}

inventory::submit! { BuiltInConversion::new("llava", mapping) }

#[cfg(test)]
mod tests {
    #[test]
    fn the_rules_are_valid() {
        assert_eq!(super::mapping().map(|mapping| mapping.len()), Ok(1 + super::NAMES.len()));
    }
}
