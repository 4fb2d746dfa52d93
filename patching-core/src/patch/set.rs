use super::construct::Patching;
use super::error::{PatchError, Unfit};
use super::key::Key;
use super::replacement::ReplacementClass;
use super::report::PatchReport;
use crate::class::{Init, known_classes};
use crate::names::{did_you_mean, near};
use burn::module::Module;
use burn::tensor::Device;
use dashmap::DashMap;
use std::fmt;
use std::sync::Arc;

/// Patches as a value, for constructions of one's own choice: no registry is involved.
///
/// ```
/// # use burn::{module::Module, tensor::{Device, Tensor}};
/// # use patching_core::prelude::*;
/// # use patching_core::patch::{PatchError, PatchSet};
/// # #[derive(Module, Debug)]
/// # pub struct MyNorm {}
/// # #[module_class]
/// # impl MyNorm {
/// #     pub fn new(_init: &Init) -> Self { Self {} }
/// #     pub fn forward(&self, x: Tensor<2>) -> Tensor<2> { x }
/// # }
/// # #[derive(Module, Debug)]
/// # pub struct Doubling {}
/// # #[replaces(MyNorm)]
/// # impl Doubling {
/// #     pub fn new(_init: &Init) -> Self { Self {} }
/// #     pub fn forward(&self, x: Tensor<2>) -> Tensor<2> { x * 2.0 }
/// # }
/// let patches = PatchSet::new([("Norm$", class::<Doubling>())])?;
/// let (norm, report) = patches.apply(&Device::flex(), |init| MyNorm::slot(init))?;
/// assert!(norm.implementation::<Doubling>().is_some());
/// assert_eq!(report.replaced.len(), 1);
/// # Ok::<(), PatchError>(())
/// ```
///
/// Sets are cheap to clone. Constructions that share a set look up each class once between them.
#[derive(Clone, Default)]
pub struct PatchSet(Arc<Patches>);

#[derive(Default)]
struct Patches {
    /// In the order of registration.
    patches: Vec<Patch>,
    /// Which patch a class gets, by its name. Looked up by every slot constructed, from any thread.
    found: DashMap<&'static str, Option<usize>>,
}

#[derive(Clone, Debug)]
struct Patch {
    key: Key,
    replacement: ReplacementClass,
}

impl PatchSet {
    /// Patches from class names or expressions and their replacements.
    ///
    /// # Errors
    ///
    /// For a key that is empty, an invalid expression or there twice, and for the name of a class that its replacement
    /// does not have the interface of.
    pub fn new<K: Into<String>>(mapping: impl IntoIterator<Item = (K, ReplacementClass)>) -> Result<Self, PatchError> {
        Self::default().with(mapping, false)
    }

    /// This set with `mapping` added. Keys that are there already are an error, or with `overwrite` get the new
    /// replacement in their old place.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), and [`PatchError::Taken`] for a key that is there already, without `overwrite`.
    pub fn with<K: Into<String>>(
        &self,
        mapping: impl IntoIterator<Item = (K, ReplacementClass)>,
        overwrite: bool,
    ) -> Result<Self, PatchError> {
        let (set, added) = self.extended(mapping, overwrite)?;
        added.iter().for_each(Self::warn_if_unknown);
        Ok(set)
    }

    /// [`with`](Self::with), and the keys that are new.
    pub(super) fn extended<K: Into<String>>(
        &self,
        mapping: impl IntoIterator<Item = (K, ReplacementClass)>,
        overwrite: bool,
    ) -> Result<(Self, Vec<Key>), PatchError> {
        let mut added = Vec::new();
        let mut patches = self.0.patches.clone();
        let mut given = Vec::<String>::new();
        for (key, replacement) in mapping {
            let key = Key::new(key.into())?;
            check_interface(&key, &replacement)?;
            let present = patches.iter_mut().find(|patch| patch.key.as_str() == key.as_str());
            if let Some(patch) = present {
                let (registered, key) = (patch.replacement.name(), key.to_string());
                if given.contains(&key) {
                    return Err(PatchError::Twice { key, first: registered, second: replacement.name() });
                }
                if !overwrite {
                    return Err(PatchError::Taken { key, registered, given: replacement.name() });
                }
                given.push(key);
                patch.replacement = replacement;
            } else {
                added.push(key.clone());
                given.push(key.to_string());
                patches.push(Patch { key, replacement });
            }
        }
        Ok((Self::of(patches), added))
    }

    /// Says so in the log if no class of this program has a name that `key` matches.
    pub(super) fn warn_if_unknown(key: &Key) {
        if !known_classes().any(|class| key.matches(class.name)) {
            let near = near(key.as_str(), known_classes().map(|class| class.name));
            log::warn!("the key `{key}` matches no class of this program{}", did_you_mean(&near));
        }
    }

    /// This set without `keys`, written as they were given.
    ///
    /// # Errors
    ///
    /// [`PatchError::Unknown`] names all keys that are not there.
    pub fn without<K: AsRef<str>>(&self, keys: impl IntoIterator<Item = K>) -> Result<Self, PatchError> {
        let mut patches = self.0.patches.clone();
        let mut unknown = Vec::new();
        for key in keys {
            let key = key.as_ref();
            match patches.iter().position(|patch| patch.key.as_str() == key) {
                Some(at) => drop(patches.remove(at)),
                None => {
                    let near = near(key, self.keys()).into_iter().map(str::to_owned).collect();
                    unknown.push((key.to_owned(), near));
                }
            }
        }
        if unknown.is_empty() { Ok(Self::of(patches)) } else { Err(PatchError::Unknown { keys: unknown }) }
    }

    fn of(patches: Vec<Patch>) -> Self {
        Self(Arc::new(Patches { patches, found: DashMap::new() }))
    }

    /// Constructs something with these patches; also says what they replaced.
    ///
    /// # Errors
    ///
    /// [`PatchError::Unfit`] if a pattern matched a class that its replacement cannot stand in for.
    pub fn apply<M: Module>(
        &self,
        device: &Device,
        construct: impl FnOnce(&Init) -> M,
    ) -> Result<(M, PatchReport), PatchError> {
        let init = self.init(device);
        let model = construct(&init);
        init.check_patches()?;
        let report = self.report(&model);
        Ok((model, report))
    }

    /// What to tell constructors that are to use these patches. [`Init::check_patches`] afterwards says whether all
    /// of them could be used.
    pub fn init(&self, device: &Device) -> Init {
        let init = Init::new(device);
        if self.is_empty() { init } else { init.patched(Patching::new(self.clone())) }
    }

    /// What these patches have replaced in `model`, and which of their keys match nothing in it.
    pub fn report<M: Module>(&self, model: &M) -> PatchReport {
        PatchReport::new(self, model)
    }

    /// The replacement for the key `key`, written as it was given.
    pub fn get(&self, key: &str) -> Option<&ReplacementClass> {
        self.0.patches.iter().find(|patch| patch.key.as_str() == key).map(|patch| &patch.replacement)
    }

    /// Keys and replacements, in the order of registration.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ReplacementClass)> {
        self.0.patches.iter().map(|patch| (patch.key.as_str(), &patch.replacement))
    }

    /// The keys, in the order of registration.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|(key, _)| key)
    }

    /// How many patches there are.
    pub fn len(&self) -> usize {
        self.0.patches.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.patches.is_empty()
    }

    /// The patch for the class `class`: that of its exact name, else the first whose pattern matches.
    pub(crate) fn find(&self, class: &'static str) -> Option<(&str, &ReplacementClass)> {
        let known = self.0.found.get(class).map(|at| *at);
        let at = known.unwrap_or_else(|| {
            let position = |exact| {
                self.0.patches.iter().position(|patch| patch.key.is_exact() == exact && patch.key.matches(class))
            };
            let at = position(true).or_else(|| position(false));
            self.0.found.insert(class, at);
            at
        });
        let patch = self.0.patches.get(at?)?;
        Some((patch.key.as_str(), &patch.replacement))
    }

    /// Whether the key `key` matches the class's name, whether or not others come before it.
    pub(super) fn matches(&self, key: &str, class: &str) -> bool {
        self.0.patches.iter().any(|patch| patch.key.as_str() == key && patch.key.matches(class))
    }

    /// Whether the key `key` is a class's exact name.
    pub(crate) fn is_exact(&self, key: &str) -> bool {
        self.0.patches.iter().any(|patch| patch.key.is_exact() && patch.key.as_str() == key)
    }

    /// What to say of a pattern that matched a class which its replacement cannot stand in for.
    pub(crate) fn unfit(&self, key: &str, matched: Vec<&'static str>) -> Option<Unfit> {
        let patch = self.0.patches.iter().find(|patch| patch.key.as_str() == key)?;
        let mut stands_in: Vec<_> = patch.replacement.stands_in_for().collect();
        stands_in.sort_unstable();
        stands_in.dedup();
        let fit: Vec<&str> = stands_in.iter().copied().filter(|class| patch.key.matches(class)).collect();
        let narrower = match fit.as_slice() {
            [] => None,
            [only] => Some((*only).to_owned()),
            several => Some(format!("^(?:{})$", several.join("|"))),
        };
        Some(Unfit { key: key.to_owned(), replacement: patch.replacement.name(), matched, stands_in, narrower })
    }
}

/// The exact name of a class that the program knows must be one that the replacement can stand in for.
fn check_interface(key: &Key, replacement: &ReplacementClass) -> Result<(), PatchError> {
    let Key::Exact(name) = key else { return Ok(()) };
    if replacement.is_original() || replacement.stands_in_for().any(|class| class == name) {
        return Ok(());
    }
    if known_classes().any(|class| class.name == name) {
        let (key, stands_in) = (name.clone(), replacement.stands_in_for().collect());
        return Err(PatchError::NotOf { key, replacement: replacement.name(), stands_in });
    }
    Ok(())
}

impl IntoIterator for PatchSet {
    type Item = (String, ReplacementClass);
    type IntoIter = std::vec::IntoIter<Self::Item>;
    fn into_iter(self) -> Self::IntoIter {
        let all: Vec<_> = self.iter().map(|(key, replacement)| (key.to_owned(), replacement.clone())).collect();
        all.into_iter()
    }
}

impl fmt::Debug for PatchSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(key, replacement)| (key, replacement.name()))).finish()
    }
}

impl fmt::Display for PatchSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each: Vec<_> = self.iter().map(|(key, replacement)| format!("{key}: {replacement}")).collect();
        write!(f, "{{{}}}", each.join(", "))
    }
}
