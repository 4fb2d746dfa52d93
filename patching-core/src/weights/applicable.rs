//! The conversions that apply to a model, and those that were registered in vain.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;
use strsim::damerau_levenshtein;

use super::config::PretrainedConfig;
use super::conversion::{self, ConversionError, ConversionMapping, RuleSet, Submodel};
use super::pretrained::PreTrainedModel;
use super::report::quoted;
use crate::class::{BaseModel, SlotInfo};
use crate::names::short_name;

/// The rules that apply to a model, and the names that they are looked up by.
pub(crate) struct Applicable {
    pub(crate) rules: RuleSet,
    /// None if the rules were given by the caller.
    names: BTreeSet<String>,
}

/// The rules for a model with this config: `own` alone, or those registered or built in for it, for its base models and
/// for the models inside it.
pub(crate) fn applicable<M: PreTrainedModel>(
    config: &M::Config,
    bases: &[BaseModel],
    own: Option<&ConversionMapping>,
) -> Result<Applicable, ConversionError> {
    let json = serde_json::to_value(config).unwrap_or_default();
    let mut rules = RuleSet::new(M::BASE_MODEL_PREFIX, &json);
    if let Some(own) = own {
        rules.add(own, "", true);
        return Ok(Applicable { rules, names: BTreeSet::new() });
    }
    let own_type = stated_type::<M::Config>(&json);
    let submodels = M::submodels(config);
    let parts = submodels.iter().flat_map(|Submodel { path, class_name, model_type }| {
        [class_name.as_str(), model_type].map(|name| (name, path.as_str()))
    });
    let models = bases.iter().map(|base| (base.class.as_str(), base.path.as_str()));
    let all = [(M::CLASS_NAME, "")].into_iter().chain(models).chain([(own_type.as_str(), "")]).chain(parts);
    let mut known = BTreeSet::new();
    for (name, path) in all {
        if name.is_empty() || !known.insert((name, path)) {
            continue;
        }
        if let Some(registered) = conversion::registered(name) {
            rules.add(&registered, path, true);
        } else if (name, path) == (own_type.as_str(), "") {
            rules.add(&M::conversion_mapping(config)?, path, false);
        } else if let Some(built_in) = conversion::built_in(name)? {
            rules.add(&built_in, path, false);
        }
    }
    Ok(Applicable { rules, names: known.into_iter().map(|(name, _)| name.to_owned()).collect() })
}

/// The `model_type` of a config.
pub(crate) fn model_type<C: PretrainedConfig>(config: &C) -> String {
    stated_type::<C>(&serde_json::to_value(config).unwrap_or_default())
}

fn stated_type<C: PretrainedConfig>(json: &Value) -> String {
    let stated = json.get("model_type").and_then(Value::as_str);
    stated.or(C::MODEL_TYPES.first().copied()).unwrap_or_default().to_owned()
}

/// Conversions that are registered for a name that looks like one of this model's, but is none.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnusedConversion {
    /// The name that they are registered for.
    pub name: String,
    /// Whether that is the name of a module class inside the model.
    pub is_module_class: bool,
    /// Names of the model and of the models inside it that look like it; all of them, if it is a module class.
    pub near: Vec<String>,
}

impl fmt::Display for UnusedConversion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, is_module_class, near } = self;
        let near = quoted(near);
        if *is_module_class {
            return write!(
                formatter,
                "`{name}` is a class inside the model, and conversions registered for it are not used: they are registered \
                 for a model type or the class name of a model, here {near}"
            );
        }
        write!(formatter, "conversions registered for `{name}` are not used: this model has the name {near}")
    }
}

impl Applicable {
    /// The names among `registered` that somebody may have meant this model by. `slots` are those of the model.
    pub(crate) fn in_vain(&self, registered: Vec<String>, slots: &[SlotInfo]) -> Vec<UnusedConversion> {
        if self.names.is_empty() {
            return Vec::new();
        }
        let is_class =
            |name: &str| slots.iter().any(|slot| slot.class == name || short_name(slot.implementation) == name);
        let others = registered.into_iter().filter(|name| !self.names.contains(name));
        let unused = others.filter_map(|name| {
            let is_module_class = is_class(&name);
            let near = self.names.iter().filter(|known| is_module_class || is_alike(&name, known));
            let near: Vec<_> = near.cloned().collect();
            // a name with rules of its own is that of another model
            let meant = !near.is_empty() && (is_module_class || !conversion::is_built_in(&name));
            meant.then_some(UnusedConversion { name, is_module_class, near })
        });
        unused.collect()
    }
}

/// Whether `name` may be `known`, misspelt. Names that differ in numbers alone are versions.
fn is_alike(name: &str, known: &str) -> bool {
    let plain = |name: &str| name.chars().filter(|char| char.is_alphanumeric()).collect::<String>().to_lowercase();
    let letters = |name: &str| name.chars().filter(|char| !char.is_numeric()).collect::<String>();
    let (name, known) = (plain(name), plain(known));
    if name == known {
        return true;
    }
    let slips = match known.len() {
        0..4 => 0,
        4..8 => 1,
        _ => 2,
    };
    letters(&name) != letters(&known) && damerau_levenshtein(&name, &known) <= slips
}

#[cfg(test)]
mod tests {
    use super::is_alike;

    #[test]
    fn misspelt_names_are_told_from_others() {
        for (name, known) in [
            ("lama", "llama"),
            ("Llama", "llama"),
            ("LlamaForCausalLm", "LlamaForCausalLM"),
            ("LlamaForCasualLM", "LlamaForCausalLM"),
            ("Qwen2Moe", "qwen2_moe"),
            (" llama", "llama"),
        ] {
            assert!(is_alike(name, known), "{name} for {known}");
        }
        for (name, known) in [
            ("qwen3", "qwen2"),
            ("qwen2_moe", "qwen2"),
            ("LlamaForCausalLM", "LlamaModel"),
            ("gpt", "opt"),
            ("", "llama"),
            ("mamba2", "mamba"),
        ] {
            assert!(!is_alike(name, known), "{name} for {known}");
        }
    }
}
