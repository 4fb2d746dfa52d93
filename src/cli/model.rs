//! Finding and loading the model.

use super::args::{Backend, Dtype, ModelArgs, Task};
use super::error::CliError;
use super::progress;
use burn::tensor::Device;
use burnlens::burn_models::auto::{AnyModel, AutoError, ModelClass};
use burnlens::burn_models::layers::attention::{AttentionInterface, DEFAULT_ATTENTION};
use burnlens::burn_models::layers::experts::ExpertsInterface;
use burnlens::patching_core::capture::{CapturePlan, PlannedKey};
use burnlens::patching_core::weights::{LoadOptions, LoadReport};
use std::path::{Path, PathBuf};

/// The attention implementation that always computes by the formula, so that there is nothing to leave.
const EAGER: &str = "eager";

/// How parts of a model are to be computed, where the caller says so.
#[derive(Clone, Copy, Default)]
pub(crate) struct Implementations<'a> {
    attention: Option<&'a str>,
    experts: Option<&'a str>,
}

impl<'a> Implementations<'a> {
    pub(crate) fn of(args: &'a ModelArgs) -> Self {
        let ModelArgs { attn_implementation, experts_implementation, .. } = args;
        Self { attention: attn_implementation.as_deref(), experts: experts_implementation.as_deref() }
    }
}

/// Where a model lies, and as what it is to be loaded.
pub(crate) struct Source {
    pub(crate) dir: PathBuf,
    pub(crate) class: &'static ModelClass,
    /// Nothing was named: the model that comes along.
    pub(crate) is_default: bool,
}

impl Source {
    pub(crate) fn of(args: &ModelArgs) -> Result<Self, CliError> {
        // A name that does not exist is told before anything is loaded.
        if let Some(name) = &args.attn_implementation {
            AttentionInterface::check(Some(name))?;
        }
        if let Some(name) = &args.experts_implementation {
            ExpertsInterface::check(Some(name))?;
        }
        let dir = args.model.clone().unwrap_or_else(default_model);
        let class = class(&dir, &args.task)?;
        Ok(Self { dir, class, is_default: args.model.is_none() })
    }

    /// Loads the model, with a progress bar.
    pub(crate) fn load(
        &self,
        device: &Device,
        dtype: Option<Dtype>,
        implementations: Implementations<'_>,
    ) -> Result<(AnyModel, LoadReport), CliError> {
        let bar = progress::bar("loading");
        let mut options = LoadOptions::new().dtype(dtype.map(Dtype::float)).progress(progress::advance(&bar));
        if let Some(name) = implementations.attention {
            options = options.attn_implementation(name);
        }
        if let Some(name) = implementations.experts {
            options = options.experts_implementation(name);
        }
        let loaded = AnyModel::from_pretrained_as(&self.dir, self.class, device, &options);
        bar.finish_and_clear();
        loaded.map_err(|source| self.failed(source))
    }

    /// The model without its weights.
    pub(crate) fn describe(&self, device: &Device, implementations: Implementations<'_>) -> Result<AnyModel, CliError> {
        let model = AnyModel::from_config_of(&self.dir, self.class, device);
        let mut model = model.map_err(|source| self.failed(source))?;
        if let Some(name) = implementations.attention {
            model.set_attn_implementation(name)?;
        }
        if let Some(name) = implementations.experts {
            model.set_experts_implementation(name)?;
        }
        Ok(model)
    }

    fn failed(&self, source: AutoError) -> CliError {
        failed(&self.dir, source)
    }
}

fn failed(dir: &Path, source: AutoError) -> CliError {
    CliError::Load { dir: dir.to_owned(), source: Box::new(source) }
}

/// The class that `task` means for the checkpoint in `dir`.
pub(crate) fn class(dir: &Path, task: &Task) -> Result<&'static ModelClass, CliError> {
    let class = match task {
        Task::Auto => ModelClass::of_checkpoint(dir),
        Task::Base => ModelClass::base_of(dir),
        Task::Class(name) => ModelClass::named(dir, name),
    };
    class.map_err(|source| match (source, task) {
        (AutoError::UnknownArchitecture { found, known }, Task::Class(_)) => {
            CliError::UnknownClass { dir: dir.to_owned(), found, known }
        }
        (source, _) => failed(dir, source),
    })
}

/// The name of the attention implementation that `model` uses.
pub(crate) fn attention(model: &AnyModel) -> &str {
    model.attn_implementation().unwrap_or(DEFAULT_ATTENTION)
}

/// The modules whose attention is computed by the formula because of `plan`, for a fused kernel gives no weights:
/// none where it always is. `None`: the implementation is not one that comes along, so nothing is known of it.
pub(crate) fn leave_fused(model: &AnyModel, plan: &CapturePlan, backend: Backend) -> Option<Vec<String>> {
    match attention(model) {
        EAGER => return Some(Vec::new()),
        DEFAULT_ATTENTION if backend == Backend::Ndarray => return Some(Vec::new()),
        DEFAULT_ATTENTION => {}
        _ => return None,
    }
    let keys = plan.keys().iter().filter(|key| key.key().ends_with("attentions"));
    let values = keys.flat_map(PlannedKey::values).filter(|value| value.is_kept);
    let mut paths: Vec<String> = values.map(|value| value.path.to_owned()).collect();
    paths.dedup();
    Some(paths)
}

/// How attention is computed, in words.
///
/// Whether a kernel serves a call depends on its inputs as well: single queries, and half precision with a mask, go by
/// the formula.
pub(crate) fn attention_in_words(model: &AnyModel, plan: &CapturePlan, backend: Backend) -> String {
    let name = attention(model);
    let Some(left) = leave_fused(model, plan, backend) else { return format!("{name}, as it was registered") };
    let fused = format!("{name}, fused where {backend} can");
    match &left[..] {
        [] if name == EAGER => format!("{name}, by the formula"),
        [] if backend == Backend::Ndarray => format!("{name}, by the formula on {backend}"),
        [] => fused,
        few if few.len() <= 3 => format!("{fused}; by the formula in {}, whose weights are recorded", few.join(", ")),
        [first, rest @ ..] => {
            let last = rest.last().unwrap_or(first);
            let layers = rest.len() + 1;
            format!("{fused}; by the formula in {layers} layers ({first} to {last}), whose weights are recorded")
        }
    }
}

/// The tiny decoder: where the tool was built, or in the current folder.
fn default_model() -> PathBuf {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tiny-decoder");
    if built.exists() { built } else { PathBuf::from("models/tiny-decoder") }
}
