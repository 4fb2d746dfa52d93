use super::{AnyModel, AutoError};
use crate::models::Model;
use burn::tensor::Device;
use patching_core::patch::{PatchReport, PatchSet};
use patching_core::weights::{ConfigHead, LoadOptions, LoadReport, PretrainedConfig};
use std::path::Path;

/// A class of models that can be loaded by what a checkpoint says it is.
///
/// The program's classes are found by name wherever they are defined. One outside this crate joins in with
///
/// ```ignore
/// inventory::submit! { burn_models::auto::ModelClass::of::<MyModel>() }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ModelClass {
    /// Its name, as in a config's `architectures`.
    pub name: &'static str,
    /// The `model_type` values that its config reads.
    pub model_types: &'static [&'static str],
    /// Whether it is what a `model_type` alone stands for.
    pub is_base: bool,
    /// The names of its inputs.
    pub input_names: &'static [&'static str],
    nested_in: fn(&str) -> Option<&'static str>,
    load: Load,
    construct: Construct,
    plan: Plan,
}

inventory::collect!(ModelClass);

type Load = fn(&Path, &Device, &LoadOptions) -> Result<(AnyModel, LoadReport), AutoError>;
type Construct = fn(&Path, &Device, &PatchSet) -> Result<(AnyModel, PatchReport), AutoError>;
type Plan = fn(&Path, &Device, &PatchSet) -> Result<PatchReport, AutoError>;

impl ModelClass {
    /// The class `M`.
    pub const fn of<M: Model>() -> Self {
        Self {
            name: M::CLASS_NAME,
            model_types: M::Config::MODEL_TYPES,
            is_base: M::IS_BASE,
            input_names: M::INPUT_NAMES,
            nested_in: M::Config::nested_in,
            load: load::<M>,
            construct: construct::<M>,
            plan: plan::<M>,
        }
    }

    /// All classes that the program has, by name.
    pub fn all() -> Vec<&'static Self> {
        let mut all: Vec<&'static Self> = inventory::iter::<Self>().collect();
        all.sort_by_key(|class| class.name);
        all
    }

    /// The class of the checkpoint in the folder `dir`: the first of its `architectures`, or without any the one that
    /// its `model_type` alone stands for.
    ///
    /// # Errors
    ///
    /// When the config cannot be read or names a class or family that is not known, or both contradict each other.
    pub fn of_checkpoint(dir: impl AsRef<Path>) -> Result<&'static Self, AutoError> {
        let dir = dir.as_ref();
        let head = ConfigHead::from_pretrained(dir)?;
        match head.architectures.as_deref().unwrap_or_default().first() {
            Some(architecture) => Self::find(dir, &head, architecture),
            None => Self::base(dir, &head),
        }
    }

    /// The class without a head of the checkpoint in the folder `dir`: that of its `model_type`, or without one that of
    /// the family of its first known architecture.
    ///
    /// # Errors
    ///
    /// When the config cannot be read or names no family that is known.
    pub fn base_of(dir: impl AsRef<Path>) -> Result<&'static Self, AutoError> {
        let dir = dir.as_ref();
        Self::base(dir, &ConfigHead::from_pretrained(dir)?)
    }

    /// The `model_type` of the checkpoint in the folder `dir`, or where it has none that of its first known architecture.
    ///
    /// # Errors
    ///
    /// When the config cannot be read or names no family that is known.
    pub fn family_of(dir: impl AsRef<Path>) -> Result<&'static str, AutoError> {
        let dir = dir.as_ref();
        Self::family(dir, &ConfigHead::from_pretrained(dir)?)
    }

    /// The class `name`, if it can be loaded from the checkpoint in the folder `dir`: a class of its family, or of a
    /// part of it.
    ///
    /// # Errors
    ///
    /// When the config cannot be read, names a family that is not known, or the family has no such class.
    pub fn named(dir: impl AsRef<Path>, name: &str) -> Result<&'static Self, AutoError> {
        let dir = dir.as_ref();
        Self::find(dir, &ConfigHead::from_pretrained(dir)?, name)
    }

    /// The classes that can be loaded from a config of type `model_type`.
    pub fn of_family(model_type: &str) -> Vec<&'static Self> {
        let reads = |class: &&Self| class.model_types.contains(&model_type) || (class.nested_in)(model_type).is_some();
        Self::all().into_iter().filter(reads).collect()
    }

    /// All `model_type` values that some class reads, sorted.
    pub fn model_types() -> Vec<&'static str> {
        let mut types: Vec<_> = inventory::iter::<Self>().flat_map(|class| class.model_types.iter().copied()).collect();
        types.sort_unstable();
        types.dedup();
        types
    }

    fn find(dir: &Path, head: &ConfigHead, name: &str) -> Result<&'static Self, AutoError> {
        let model_type = Self::family(dir, head)?;
        let of_family = Self::of_family(model_type);
        if let Some(class) = of_family.iter().find(|class| class.name == name) {
            return Ok(class);
        }
        match inventory::iter::<Self>().any(|class| class.name == name) {
            true => Err(AutoError::OtherFamily { model_type, architecture: name.to_owned() }),
            false => Err(AutoError::UnknownArchitecture {
                found: name.to_owned(),
                known: of_family.iter().map(|class| class.name.to_owned()).collect(),
            }),
        }
    }

    fn base(dir: &Path, head: &ConfigHead) -> Result<&'static Self, AutoError> {
        let model_type = Self::family(dir, head)?;
        let is_base = |class: &&&Self| class.is_base && class.model_types.contains(&model_type);
        Self::all()
            .iter()
            .find(is_base)
            .copied()
            .ok_or_else(|| AutoError::UnknownFamily { found: model_type.to_owned(), known: Self::model_types() })
    }

    /// The `model_type` of a config, or of the first architecture that is known where it has none.
    fn family(dir: &Path, head: &ConfigHead) -> Result<&'static str, AutoError> {
        if let Some(found) = &head.model_type {
            let known = Self::model_types();
            let family = known.iter().find(|model_type| *model_type == found).copied();
            return family.ok_or_else(|| AutoError::UnknownFamily { found: found.clone(), known });
        }
        let architectures = head.architectures.as_deref().unwrap_or_default();
        let of_class = |name: &String| inventory::iter::<Self>().find(|class| class.name == name);
        let class = architectures.iter().find_map(of_class);
        let model_type = class.and_then(|class| class.model_types.first().copied());
        model_type.ok_or_else(|| AutoError::NoFamily { path: dir.join("config.json") })
    }

    pub(super) fn load(
        &self,
        dir: &Path,
        device: &Device,
        options: &LoadOptions,
    ) -> Result<(AnyModel, LoadReport), AutoError> {
        (self.load)(dir, device, options)
    }

    pub(super) fn construct(
        &self,
        dir: &Path,
        device: &Device,
        patches: &PatchSet,
    ) -> Result<(AnyModel, PatchReport), AutoError> {
        (self.construct)(dir, device, patches)
    }

    pub(super) fn plan(&self, dir: &Path, device: &Device, patches: &PatchSet) -> Result<PatchReport, AutoError> {
        (self.plan)(dir, device, patches)
    }
}

fn load<M: Model>(dir: &Path, device: &Device, options: &LoadOptions) -> Result<(AnyModel, LoadReport), AutoError> {
    let (model, report) = M::from_pretrained_with(dir, device, options)?;
    Ok((AnyModel::new(model), report))
}

fn construct<M: Model>(dir: &Path, device: &Device, patches: &PatchSet) -> Result<(AnyModel, PatchReport), AutoError> {
    let config = M::Config::from_pretrained(dir)?;
    let (model, report) = M::from_config_with(&config, device, patches)?;
    Ok((AnyModel::new(model), report))
}

fn plan<M: Model>(dir: &Path, device: &Device, patches: &PatchSet) -> Result<PatchReport, AutoError> {
    let config = M::Config::from_pretrained(dir)?;
    Ok(M::patch_plan(&config, device, patches)?)
}

/// Makes a model's class known to auto loading.
macro_rules! model_class {
    ($model:ident) => {
        inventory::submit! { $crate::auto::ModelClass::of::<$model>() }
    };
}
pub(crate) use model_class;
