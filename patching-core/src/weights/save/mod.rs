//! Writing a checkpoint.

mod collect;
mod commit;
mod extra;
mod output;
mod shards;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};

use burn::module::Module;
use safetensors::tensor::Dtype;
use serde_json::{Value, json};

use self::collect::{Saved, collect};
use self::commit::{Committed, Staging};
use self::output::Output;
use super::config::{CONFIG_NAME, PretrainedConfig, to_sorted_json};
use super::conversion::{Known, restore};
use super::error::SaveError;
use super::layout::LayoutRules;
use super::options::{Meter, SaveOptions};
use super::report::{ConvertedKey, RenamedKey, TiedKey};

/// What a save did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SaveReport {
    /// The names of the weights' files, in order.
    pub files: Vec<String>,
    /// Tensors saved.
    pub tensors: usize,
    /// Bytes of tensors saved.
    pub bytes: u64,
    /// Parameters left out, since the model ties them to another that is saved.
    pub tied: Vec<TiedKey>,
    /// Parameters that the model ties but that have different values by now. All of them were saved.
    pub untied: Vec<TiedKey>,
    /// Tensors that were made of parameters, to be as in the checkpoint that the model was loaded from.
    pub converted: Vec<ConvertedKey>,
    /// Parameters that got another name back: from the one in the model to the one in the file.
    pub renamed: Vec<RenamedKey>,
    /// Files of an earlier checkpoint that could not be removed. No reader looks at them.
    pub left_over: Vec<PathBuf>,
    /// Files that were in the folder already and were kept, though the extra ones of the same name are different.
    pub kept_files: Vec<PathBuf>,
}

impl fmt::Display for SaveReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { files, tensors, bytes, tied, untied, converted, renamed, left_over, kept_files } = self;
        write!(formatter, "saved {tensors} tensors ({bytes} bytes) in {}", files.join(", "))?;
        for TiedKey { key, source } in tied {
            write!(formatter, "\n`{key}` is tied to `{source}` and left out")?;
        }
        for TiedKey { key, source } in untied {
            write!(formatter, "\n`{key}` differs from `{source}`, which it should be tied to; both were saved")?;
        }
        if !converted.is_empty() {
            let made: usize = converted.iter().map(|converted| converted.targets.len()).sum();
            let parameters: usize = converted.iter().map(|converted| converted.sources.len()).sum();
            write!(formatter, "\n{parameters} parameters were converted back to {made} tensors")?;
        }
        if !renamed.is_empty() {
            write!(formatter, "\n{} parameters got the names of the checkpoint back", renamed.len())?;
        }
        for path in left_over {
            write!(formatter, "\n`{}` could not be removed", path.display())?;
        }
        for path in kept_files {
            write!(formatter, "\n`{}` was there already and was kept; the one to be copied differs", path.display())?;
        }
        Ok(())
    }
}

/// What a model says of itself.
pub(super) struct Facts<'a> {
    pub(super) class_name: &'a str,
    pub(super) ties: &'a [(String, String)],
    pub(super) layouts: &'a LayoutRules,
}

/// Saves `module` to the folder `dir`; with `known`, in the layout of a checkpoint.
pub(super) fn save<M: Module, C: PretrainedConfig>(
    module: &M,
    config: &C,
    facts: &Facts<'_>,
    known: Option<&Known<'_>>,
    dir: &Path,
    options: &SaveOptions,
) -> Result<SaveReport, SaveError> {
    if options.max_shard_size == 0 {
        return Err(SaveError::ShardSize);
    }
    let all = collect(module, facts.layouts, options.dtype)?;
    unique(&all)?;
    let config = config_text(config, facts.class_name, &all)?;
    let mut report = SaveReport::default();
    let kept = without_tied(&all, facts.ties, &mut report)?;
    let kept = outputs(&kept, known, &mut report)?;
    let shards = shards::divide(&kept, options.max_shard_size);
    report.files = shards.iter().map(|shard| shard.name.clone()).collect();
    report.tensors = kept.len();
    report.bytes = kept.iter().map(|tensor| tensor.bytes).sum();

    let staging = Staging::new(dir)?;
    staging.write(CONFIG_NAME, &config)?;
    let mut meter = Meter::new(options.progress.as_ref(), report.tensors, report.bytes);
    for shard in &shards {
        shards::write(shard, &staging.path(&shard.name), &mut meter)?;
    }
    let extra = match &options.copy_extra_files_from {
        Some(from) => extra::copy(from, &staging)?,
        None => Vec::new(),
    };
    let index = (shards.len() > 1).then(|| shards::index(&shards));
    let Committed { left_over, kept } = staging.commit(&report.files, index.as_ref(), &extra)?;
    report.left_over = left_over;
    report.kept_files = kept;
    Ok(report)
}

/// The tensors to be written for the parameters `kept`.
fn outputs<'a>(
    kept: &[&'a Saved],
    known: Option<&Known<'_>>,
    report: &mut SaveReport,
) -> Result<Vec<Output<'a>>, SaveError> {
    let Some(known) = known else {
        return Ok(kept.iter().map(|saved| Output::plain(saved)).collect());
    };
    let restored = restore(&output::tensors(kept), known)?;
    report.converted = restored.converted;
    report.renamed = restored.renamed;
    let outputs = restored.written.into_iter().map(|written| Output::written(written, kept));
    let outputs: Vec<_> = outputs.collect::<Result<_, _>>()?;
    let mut keys = HashSet::new();
    match outputs.iter().find(|output| !keys.insert(output.key.as_str())) {
        Some(output) => Err(SaveError::DuplicateKey { key: output.key.clone() }),
        None => Ok(outputs),
    }
}

fn unique(tensors: &[Saved]) -> Result<(), SaveError> {
    let mut paths = HashMap::new();
    for Saved { key, path, .. } in tensors {
        if let Some(first) = paths.insert(key, path) {
            let (first, second) = (first.clone(), path.clone());
            return Err(SaveError::DuplicateParameter { key: key.clone(), first, second });
        }
    }
    Ok(())
}

/// Leaves out tied parameters, unless training or a checkpoint with both gave them values of their own.
fn without_tied<'a>(
    all: &'a [Saved],
    ties: &[(String, String)],
    report: &mut SaveReport,
) -> Result<Vec<&'a Saved>, SaveError> {
    let mut kept: Vec<_> = all.iter().collect();
    for (tied, source) in ties {
        let find = |name: &String| {
            let by_path = || all.iter().find(|tensor| tensor.path == *name || tensor.name == *name);
            all.iter().find(|tensor| tensor.key == *name).or_else(by_path)
        };
        let (Some(tied), Some(source)) = (find(tied), find(source)) else {
            continue;
        };
        let names = TiedKey { key: tied.key.clone(), source: source.key.clone() };
        let alike = tied.key != source.key && tied.dtype == source.dtype && tied.shape == source.shape;
        if alike && tied.read()?.bytes()[..] == source.read()?.bytes()[..] {
            kept.retain(|tensor| tensor.key != tied.key);
            report.tied.push(names);
        } else {
            report.untied.push(names);
        }
    }
    Ok(kept)
}

/// The config as the reference writes it, with the class and the element type of what is saved.
fn config_text<C: PretrainedConfig>(config: &C, class_name: &str, tensors: &[Saved]) -> Result<String, SaveError> {
    let mut value = serde_json::to_value(config).map_err(SaveError::Config)?;
    let found = match &value {
        Value::Object(_) => "an object",
        Value::Array(_) => "an array",
        Value::String(_) => "a string",
        Value::Number(_) => "a number",
        Value::Bool(_) => "a boolean",
        Value::Null => "null",
    };
    let Some(fields) = value.as_object_mut() else {
        return Err(SaveError::ConfigShape { found });
    };
    fields.insert("architectures".to_owned(), json!([class_name]));
    if let Some(model_type) = C::MODEL_TYPES.first() {
        fields.entry("model_type").or_insert_with(|| json!(model_type));
    }
    let dtype = tensors.iter().find(|tensor| tensor.float).and_then(|tensor| match tensor.dtype {
        Dtype::F64 => Some("float64"),
        Dtype::F32 => Some("float32"),
        Dtype::F16 => Some("float16"),
        Dtype::BF16 => Some("bfloat16"),
        _ => None,
    });
    if let Some(dtype) = dtype {
        fields.insert("dtype".to_owned(), json!(dtype));
    }
    to_sorted_json(&value).map_err(SaveError::Config)
}
