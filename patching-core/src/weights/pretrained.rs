//! Models that load and save checkpoints.

use std::cell::LazyCell;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use burn::module::{Module, ModuleDisplay};
use burn::tensor::Device;

use super::applicable::{applicable, model_type};
use super::apply::apply;
use super::config::{ConfigError, PretrainedConfig};
use super::conversion::{self, ConversionError, ConversionMapping, Submodel};
use super::error::{LoadError, SaveError};
use super::layout::LayoutRules;
use super::options::{CheckpointLayout, LoadOptions, ReadMode, SaveOptions};
use super::parameters::{Unsuitable, parameters};
use super::plan::{LoadPlan, ModelFacts};
use super::reader::Checkpoint;
use super::report::LoadReport;
use super::save::{self, SaveReport};
use super::tie::tie;
use crate::capture::merge::first_device;
use crate::class::{Init, Survey, survey};
use crate::patch::{PatchReport, PatchSet, get_patch_mapping, patch_output_recorders};

/// A model that loads and saves Hugging Face checkpoints.
///
/// What a load made of the checkpoint's tensors is remembered in the field `recorders: OutputRecorders` of the base model, so
/// that saving gives the same file back. A model without that field is saved by the rules alone.
///
/// The fields of the model and of its layers are named as the checkpoint's keys; what Burn's own layers call or lay
/// out differently is known (see [`LayoutRules::standard`]). For a key that Rust has no field for, there is one with an
/// underscore: `self_` is `self`.
pub trait PreTrainedModel: Module + ModuleDisplay + 'static {
    /// Its `config.json`.
    type Config: PretrainedConfig;

    /// The class name in the config's `architectures`.
    const CLASS_NAME: &'static str;

    /// The path of the base model inside a head, as in the reference (`model`); a base model names the same.
    const BASE_MODEL_PREFIX: &'static str;

    /// Constructs the model with fresh parameters.
    fn new(config: &Self::Config, init: &Init) -> Self;

    /// The config it was constructed from.
    fn config(&self) -> &Self::Config;

    /// Parameters that share their value with another: `(tied, source)`, as paths of this model.
    fn tied_parameters(_config: &Self::Config) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Tensors that the model has no parameter for, since it uses that of another: `(key, key of the other)`.
    ///
    /// A checkpoint may hold such a tensor all the same. It must then be equal to the other, and serves where the other
    /// is absent.
    fn implied_ties(_config: &Self::Config) -> Vec<(String, String)> {
        Vec::new()
    }

    /// The config of the same model, but with a parameter of its own for the tensor `key` of an implied tie: for a
    /// checkpoint that holds another value there, which a config may not tell. By default there is none, and such a
    /// checkpoint is an error.
    fn untied(_config: &Self::Config, _key: &str) -> Option<Self::Config> {
        None
    }

    /// How the model's own layers are laid out in a checkpoint; those of Burn are known without.
    fn layouts(_config: &Self::Config) -> LayoutRules {
        LayoutRules::default()
    }

    /// What the family's published checkpoints name or lay out differently.
    ///
    /// By default what is built in ([`BuiltInConversion`](super::BuiltInConversion)) for the model type. A mapping that
    /// was registered for the model type takes its place.
    ///
    /// # Errors
    ///
    /// When a rule cannot work, or two mappings are built in for the model type.
    fn conversion_mapping(config: &Self::Config) -> Result<ConversionMapping, ConversionError> {
        Ok(conversion::built_in(&model_type(config))?.unwrap_or_default())
    }

    /// Models of other types inside this one; their rules apply to their part of a checkpoint.
    fn submodels(_config: &Self::Config) -> Vec<Submodel> {
        Vec::new()
    }

    /// Loads the model from the folder `dir`: `config.json` and `model.safetensors`, or its shards.
    ///
    /// A head loads from the checkpoint of its base model and the other way round, as far as all parameters are there.
    ///
    /// # Errors
    ///
    /// When a file is absent or wrong, and when a parameter has no value or one that does not fit; one error names all
    /// of them.
    fn from_pretrained(dir: impl AsRef<Path>, device: &Device) -> Result<Self, LoadError> {
        Self::from_pretrained_with(dir, device, &LoadOptions::default()).map(|(model, _)| model)
    }

    /// [`from_pretrained`](Self::from_pretrained) with options and a report.
    ///
    /// # Errors
    ///
    /// As [`from_pretrained`](Self::from_pretrained), less what the options allow.
    fn from_pretrained_with(
        dir: impl AsRef<Path>,
        device: &Device,
        options: &LoadOptions,
    ) -> Result<(Self, LoadReport), LoadError> {
        let mut config = Self::Config::from_pretrained(&dir)?;
        if let Some(name) = &options.attn_implementation {
            config.set_attn_implementation(name);
        }
        if let Some(name) = &options.experts_implementation {
            config.set_experts_implementation(name).map_err(ConfigError::Unbuildable)?;
        }
        let patches = options.patches.clone().unwrap_or_else(get_patch_mapping);
        // these have been followed
        let options =
            LoadOptions { attn_implementation: None, patches: None, experts_implementation: None, ..options.clone() };
        let mut ties = Self::implied_ties(&config).len();
        loop {
            let model = construct::<Self>(&config, device, &patches)?;
            let patched = patches.report(&model);
            match model.load_weights_with(&dir, &options) {
                Ok((model, mut report)) => {
                    report.patches = patched;
                    return Ok((model, report));
                }
                // what was replaced may be why
                Err(LoadError::Weights(mut report)) => {
                    report.patches = patched;
                    return Err(LoadError::Weights(report));
                }
                // another model, then; no parameter of this one was made yet
                Err(LoadError::Untied { key, source_key }) => match Self::untied(&config, &key) {
                    Some(untied) if ties > 0 => (config, ties) = (untied, ties - 1),
                    _ => return Err(LoadError::Untied { key, source_key }),
                },
                Err(error) => return Err(error),
            }
        }
    }

    /// Constructs the model with fresh parameters, the registered patches applied; parameters that are tied share them.
    ///
    /// # Errors
    ///
    /// When no such model can be constructed, when a patch cannot be applied, and when the model ties parameters that
    /// it does not have or that differ in shape.
    fn from_config(config: &Self::Config, device: &Device) -> Result<Self, LoadError> {
        constructed(config, device, &get_patch_mapping())
    }

    /// [`from_config`](Self::from_config) with `patches` instead of the registered ones, and what they replaced.
    ///
    /// # Errors
    ///
    /// As [`from_config`](Self::from_config).
    fn from_config_with(
        config: &Self::Config,
        device: &Device,
        patches: &PatchSet,
    ) -> Result<(Self, PatchReport), LoadError> {
        let model: Self = constructed(config, device, patches)?;
        let report = patches.report(&model);
        Ok((model, report))
    }

    /// What `patches` would replace in a model of this config, without weights: the model is constructed, but its
    /// parameters are never made.
    ///
    /// # Errors
    ///
    /// As [`from_config`](Self::from_config).
    fn patch_plan(config: &Self::Config, device: &Device, patches: &PatchSet) -> Result<PatchReport, LoadError> {
        let model = construct::<Self>(config, device, patches)?;
        Ok(patches.report(&model))
    }

    /// Loads the weights in the folder `dir` into this model. On an error the model is gone, never half loaded.
    ///
    /// # Errors
    ///
    /// As [`from_pretrained`](Self::from_pretrained).
    fn load_weights(self, dir: impl AsRef<Path>) -> Result<Self, LoadError> {
        self.load_weights_with(dir, &LoadOptions::default()).map(|(model, _)| model)
    }

    /// [`load_weights`](Self::load_weights) with options and a report.
    ///
    /// # Errors
    ///
    /// As [`from_pretrained_with`](Self::from_pretrained_with), and when the options choose patches or implementations:
    /// these are decided when a model is constructed.
    fn load_weights_with(self, dir: impl AsRef<Path>, options: &LoadOptions) -> Result<(Self, LoadReport), LoadError> {
        options.check_constructed()?;
        let checkpoint = Arc::new(Checkpoint::open(dir, options.read_mode)?);
        let Survey { slots, bases, transparent } = survey(&self);
        let layouts = layouts_of::<Self>(self.config(), &options.layouts, transparent);
        let parameters = parameters(&self, &layouts)
            .map_err(|Unsuitable { path, shape }| LoadError::InvalidLayout { path, shape })?;
        let conversions = applicable::<Self>(self.config(), &bases, options.conversions.as_ref())?;
        let facts = ModelFacts {
            parameters: &parameters,
            ties: Self::tied_parameters(self.config()),
            implied_ties: Self::implied_ties(self.config()),
            base_model_prefix: Self::BASE_MODEL_PREFIX,
            rules: &conversions.rules,
            bases: bases.iter().map(|base| base.path.clone()).collect(),
        };
        let mut plan = LoadPlan::new(&facts, &checkpoint, options)?;
        plan.report.unused_conversions = conversions.in_vain(conversion::registered_names(), &slots);

        let missing = !options.allow_missing && !plan.report.missing.is_empty();
        let mismatched = !options.ignore_mismatched && !plan.report.mismatched.is_empty();
        if missing || mismatched || !plan.report.problems.is_empty() {
            return Err(LoadError::Weights(Box::new(plan.report)));
        }
        let defer = options.read_mode == ReadMode::Map;
        let model = apply(self, &plan, &checkpoint, defer, options.progress.as_ref())?;
        let places = bases.into_iter().map(|base| base.place).collect();
        Ok((conversion::remember(model, places, &plan.layout), plan.report))
    }

    /// Saves the model to the folder `dir`, as `config.json` and `model.safetensors` that Transformers opens.
    ///
    /// What was converted by a load is saved as it was in the checkpoint; of a model that was not loaded, what the rules
    /// would make of a checkpoint is.
    ///
    /// The folder may be the one that the model was loaded from. What was in it stays whole until the new files are
    /// complete and on the disk, and if anything fails.
    ///
    /// # Errors
    ///
    /// When a file cannot be written, and when a parameter has no form in a checkpoint: its element type is none of
    /// safetensors, it belongs to an adapter, or two have one key. Of conversions ([`SaveError::Restore`]), when what was
    /// joined cannot be divided because nothing tells the sizes, an operation or a renaming cannot be undone, parameters
    /// that were one tensor have different element types by now, and when what the rules make of the model would not
    /// load again. Nothing is written then; [`CheckpointLayout::Model`] saves without conversions.
    fn save_pretrained(&self, dir: impl AsRef<Path>) -> Result<SaveReport, SaveError> {
        self.save_pretrained_with(dir, &SaveOptions::default())
    }

    /// [`save_pretrained`](Self::save_pretrained) with options.
    ///
    /// # Errors
    ///
    /// As [`save_pretrained`](Self::save_pretrained), and when the options contradict each other or convert elements to a
    /// type that cannot hold them.
    fn save_pretrained_with(&self, dir: impl AsRef<Path>, options: &SaveOptions) -> Result<SaveReport, SaveError> {
        let config = self.config();
        let Survey { slots: _, bases, transparent } = survey(self);
        let layouts = layouts_of::<Self>(config, &options.layouts, transparent);
        let ties = Self::tied_parameters(config);
        let facts = save::Facts { class_name: Self::CLASS_NAME, ties: &ties, layouts: &layouts };
        if options.layout == CheckpointLayout::Model {
            if options.conversions.is_some() {
                return Err(SaveError::ConversionsInModelLayout);
            }
            return save::save(self, config, &facts, None, dir.as_ref(), options);
        }
        let remembers = options.conversions.is_none() && options.layout == CheckpointLayout::Original;
        let loaded = conversion::common(&bases).filter(|_| remembers);
        let conversions = applicable::<Self>(config, &bases, options.conversions.as_ref())?;
        let unpatched = LazyCell::new(|| {
            // Its parameters are never initialised, so this is cheap.
            let Some(device) = first_device(self) else {
                return BTreeMap::new();
            };
            let model = Self::new(config, &Init::new(&device));
            let layouts = layouts_of::<Self>(config, &options.layouts, survey(&model).transparent);
            let parameters = parameters(&model, &layouts).unwrap_or_default();
            parameters.into_iter().map(|parameter| (parameter.key, parameter.file_shape)).collect::<BTreeMap<_, _>>()
        });
        let unpatched = || &*unpatched;
        let known = conversion::Known { loaded: loaded.as_deref(), rules: &conversions.rules, unpatched: &unpatched };
        save::save(self, config, &facts, Some(&known), dir.as_ref(), options)
    }
}

/// Every construction on behalf of a caller passes here.
fn construct<M: PreTrainedModel>(config: &M::Config, device: &Device, patches: &PatchSet) -> Result<M, LoadError> {
    config.validate().map_err(ConfigError::Unbuildable)?;
    config.validate_attn_implementation().map_err(ConfigError::Unbuildable)?;
    config.validate_experts_implementation().map_err(ConfigError::Unbuildable)?;
    let init = patches.init(device);
    let mut model = M::new(config, &init);
    init.check_patches()?;
    if init.has_replaced() {
        patch_output_recorders(&mut model);
    }
    Ok(model)
}

/// [`construct`], and parameters that are tied share their values.
fn constructed<M: PreTrainedModel>(config: &M::Config, device: &Device, patches: &PatchSet) -> Result<M, LoadError> {
    let model: M = construct(config, device, patches)?;
    let rules = layouts_of::<M>(config, &LayoutRules::default(), survey(&model).transparent);
    tie(model, &M::tied_parameters(config), &rules)
}

/// The caller's rules, then the model's, then the standard ones, for a model with slots at `transparent` whose names are
/// no part of a key.
fn layouts_of<M: PreTrainedModel>(config: &M::Config, own: &LayoutRules, transparent: HashSet<String>) -> LayoutRules {
    own.clone().over(M::layouts(config)).over(LayoutRules::standard()).with_transparent(transparent)
}
