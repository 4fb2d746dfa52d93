//! Mappings by model type or class name.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::error::ConversionError;
use super::mapping::ConversionMapping;
use super::transform::WeightTransform;
use crate::class::known_classes;
use crate::names::near;

static REGISTERED: RwLock<BTreeMap<String, ConversionMapping>> = RwLock::new(BTreeMap::new());

fn read() -> RwLockReadGuard<'static, BTreeMap<String, ConversionMapping>> {
    // A mapping goes in or out whole, so what a panic leaves behind is right.
    REGISTERED.read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, BTreeMap<String, ConversionMapping>> {
    REGISTERED.write().unwrap_or_else(PoisonError::into_inner)
}

/// A mapping that a family of models brings along, for a model type or class name.
///
/// If it cannot be used, or another is built in for the same name, that is an error of each load and save it is for.
///
/// ```
/// use patching_core::weights::{BuiltInConversion, ConversionError, ConversionMapping, WeightRenaming};
/// # use patching_core::__private::inventory;
///
/// fn mapping() -> Result<ConversionMapping, ConversionError> {
///     ConversionMapping::new([WeightRenaming::new("block_sparse_moe", "mlp")])
/// }
/// inventory::submit! { BuiltInConversion::new("my_moe", mapping) }
/// ```
#[derive(Debug)]
pub struct BuiltInConversion {
    name: &'static str,
    mapping: fn() -> Result<ConversionMapping, ConversionError>,
}

impl BuiltInConversion {
    /// What `mapping` makes, for models of the type or the class `name`.
    pub const fn new(name: &'static str, mapping: fn() -> Result<ConversionMapping, ConversionError>) -> Self {
        Self { name, mapping }
    }
}
inventory::collect!(BuiltInConversion);

/// Registers `mapping` for all models of the type, or of the class, `name`, from now on and on all threads.
///
/// It takes the place of what is built in for the same name. Rules for a class and for its model type both apply, those
/// for the class first.
///
/// # Errors
///
/// When `name` is blank or has a registered mapping already, or a rule cannot work. Nothing is registered then.
pub fn register_checkpoint_conversion_mapping(
    name: impl Into<String>,
    mapping: impl IntoIterator<Item = impl Into<WeightTransform>>,
) -> Result<(), ConversionError> {
    register_checkpoint_conversion_mapping_with(name, mapping, false)
}

/// [`register_checkpoint_conversion_mapping`], where `overwrite` lets the mapping replace one registered before.
///
/// # Errors
///
/// When `name` is blank, a rule cannot work, or `name` has a mapping that is not to be replaced. Nothing is registered
/// then.
pub fn register_checkpoint_conversion_mapping_with(
    name: impl Into<String>,
    mapping: impl IntoIterator<Item = impl Into<WeightTransform>>,
    overwrite: bool,
) -> Result<(), ConversionError> {
    let name = name.into();
    if name.trim().is_empty() {
        return Err(ConversionError::EmptyName);
    }
    let mapping = ConversionMapping::new(mapping)?;
    if known_classes().any(|class| class.name == name) {
        log::warn!(
            "conversions are registered for `{name}`, which is a module class: they apply only if it is also the class name \
             of a model"
        );
    }
    let mut registered = write();
    if !overwrite && registered.contains_key(&name) {
        return Err(ConversionError::AlreadyRegistered { name });
    }
    registered.insert(name, mapping);
    Ok(())
}

/// Takes back what was registered for `name`, and returns it. What is built in applies again.
///
/// # Errors
///
/// When nothing is registered for `name`.
pub fn unregister_checkpoint_conversion_mapping(name: &str) -> Result<ConversionMapping, ConversionError> {
    let mut registered = write();
    registered.remove(name).ok_or_else(|| ConversionError::NotRegistered {
        name: name.to_owned(),
        near: near(name, registered.keys().map(String::as_str)).into_iter().map(str::to_owned).collect(),
    })
}

/// Takes back all that was registered.
pub fn clear_checkpoint_conversion_mapping() {
    write().clear();
}

/// The mapping for the model type or the class `name`: what was registered, else what a linked model brings along.
///
/// # Errors
///
/// When nothing is registered, and what is built in cannot be used or is there twice.
pub fn get_checkpoint_conversion_mapping(name: &str) -> Result<Option<ConversionMapping>, ConversionError> {
    registered(name).map_or_else(|| built_in(name), |mapping| Ok(Some(mapping)))
}

pub(crate) fn registered(name: &str) -> Option<ConversionMapping> {
    read().get(name).cloned()
}

/// The names that mappings are registered for.
pub(crate) fn registered_names() -> Vec<String> {
    read().keys().cloned().collect()
}

fn built_in_for(name: &str) -> impl Iterator<Item = &'static BuiltInConversion> {
    inventory::iter::<BuiltInConversion>().filter(move |known| known.name == name)
}

/// Whether something is built in for `name`.
pub(crate) fn is_built_in(name: &str) -> bool {
    built_in_for(name).next().is_some()
}

pub(crate) fn built_in(name: &str) -> Result<Option<ConversionMapping>, ConversionError> {
    let mut known = built_in_for(name);
    match (known.next(), known.next()) {
        // which of them would come first is up to the linker
        (Some(_), Some(_)) => Err(ConversionError::BuiltInTwice { name: name.to_owned() }),
        (Some(only), None) => (only.mapping)().map(Some),
        (None, _) => Ok(None),
    }
}
