//! The patches of the whole program.

use super::error::PatchError;
use super::replacement::ReplacementClass;
use super::set::PatchSet;
use crate::class::Init;
use burn::tensor::Device;
use std::sync::{LazyLock, PoisonError, RwLock};

/// Replaced as a whole, so that whoever has taken it keeps what it took.
static REGISTERED: LazyLock<RwLock<PatchSet>> = LazyLock::new(RwLock::default);

/// Replaces the registered set by what `change` makes of it; on an error nothing changes. No code of callers runs in it.
fn update<T>(change: impl FnOnce(&PatchSet) -> Result<(PatchSet, T), PatchError>) -> Result<T, PatchError> {
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    let (changed, result) = change(&registered)?;
    *registered = changed;
    Ok(result)
}

/// Registers replacements for class names or regular expressions, for all later constructions through `from_pretrained`,
/// `from_config` and [`apply_patches`] in the program.
///
/// A key that is a plain identifier is an exact name. Anything else is an expression that may match anywhere in a
/// name unless it is anchored. An exact name beats patterns; of several patterns the first registered wins.
///
/// ```ignore
/// register_patch_mapping([
///     ("Qwen2MoeExperts", class::<SequentialExperts>()),
///     (r"^Llama\d*Attention$", class::<FusedAttention>()),
/// ])?;
/// ```
///
/// # Errors
///
/// For a key that is registered already, there twice, empty or an invalid expression, and for the name of a class that
/// its replacement does not have the interface of. Then nothing was registered.
pub fn register_patch_mapping<K: Into<String>>(
    mapping: impl IntoIterator<Item = (K, ReplacementClass)>,
) -> Result<(), PatchError> {
    register_patch_mapping_with(mapping, false)
}

/// [`register_patch_mapping`], where `overwrite` lets keys that are registered already get the new replacement. They
/// keep their place in the order.
///
/// # Errors
///
/// As [`register_patch_mapping`], less what `overwrite` allows.
pub fn register_patch_mapping_with<K: Into<String>>(
    mapping: impl IntoIterator<Item = (K, ReplacementClass)>,
    overwrite: bool,
) -> Result<(), PatchError> {
    // the caller's iterator may do anything, also ask for the registry
    let mapping: Vec<_> = mapping.into_iter().map(|(key, replacement)| (key.into(), replacement)).collect();
    let added = update(|registered| registered.extended(mapping, overwrite))?;
    // a logger may do anything, too
    added.iter().for_each(PatchSet::warn_if_unknown);
    Ok(())
}

/// Unregisters keys, written as they were registered.
///
/// # Errors
///
/// [`PatchError::Unknown`] names all keys that are not registered, with near matches. Then nothing was unregistered.
pub fn unregister_patch_mapping<K: AsRef<str>>(keys: impl IntoIterator<Item = K>) -> Result<(), PatchError> {
    let keys: Vec<String> = keys.into_iter().map(|key| key.as_ref().to_owned()).collect();
    update(|registered| Ok((registered.without(keys)?, ())))
}

/// Unregisters all patches.
pub fn clear_patch_mapping() {
    *REGISTERED.write().unwrap_or_else(PoisonError::into_inner) = PatchSet::default();
}

/// The registered patches, as they are now.
pub fn get_patch_mapping() -> PatchSet {
    REGISTERED.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Constructs a model by hand with the registered patches.
///
/// The patches reach as far as the [`Init`] that `construct` is given: other constructions, on this thread or others,
/// use the originals, during the call and after it, whatever happens in it.
///
/// ```ignore
/// let patched = apply_patches(&device, |init| LlamaModel::new(&config, init))?;
/// let plain = LlamaModel::new(&config, &Init::new(&device));
/// ```
///
/// [`PatchSet::apply`] also says what was replaced; `get_patch_mapping().apply(…)` does for the registered patches.
///
/// # Errors
///
/// [`PatchError::Unfit`] if a pattern matched a class that its replacement cannot stand in for.
pub fn apply_patches<R>(device: &Device, construct: impl FnOnce(&Init) -> R) -> Result<R, PatchError> {
    let init = get_patch_mapping().init(device);
    let constructed = construct(&init);
    init.check_patches()?;
    Ok(constructed)
}
