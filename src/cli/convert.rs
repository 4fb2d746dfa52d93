//! `burnlens convert`: writes a checkpoint anew.

use super::args::{ConvertArgs, Dtype};
use super::backend;
use super::error::CliError;
use super::files::{same_content, same_folder, shown};
use super::model::{self, Implementations, Source};
use super::progress;
use super::text::{bytes, count, field};
use burnlens::patching_core::weights::{LoadReport, SaveOptions};
use std::path::Path;

const CONFIG: &str = "config.json";

pub(crate) fn run(args: &ConvertArgs) -> Result<String, CliError> {
    if same_folder(&args.model, &args.to) {
        return Err(CliError::SameFolder { path: args.to.clone() });
    }
    let chosen = backend::choose(None)?;
    let source = Source { dir: args.model.clone(), class: model::class(&args.model, &args.task)?, is_default: false };
    let (model, loaded) = source.load(&chosen.device, None, Implementations::default())?;
    warn(&loaded);

    let bar = progress::bar("saving");
    let mut options = SaveOptions::new()
        .dtype(args.dtype.map(Dtype::float))
        .layout(args.layout.checkpoint())
        .copy_extra_files_from(&args.model)
        .progress(progress::advance(&bar));
    if let Some(size) = args.max_shard_size {
        options = options.max_shard_size(size);
    }
    let saved = model.save_pretrained_with(&args.to, &options);
    bar.finish_and_clear();
    let saved = saved.map_err(|source| CliError::Save { dir: args.to.clone(), source: Box::new(source) })?;
    for tied in &saved.untied {
        eprintln!(
            "warning: `{}` differs from `{}`, to which the config ties it: both were saved",
            tied.key, tied.source
        );
    }
    for path in &saved.left_over {
        eprintln!("warning: `{}` is of an earlier checkpoint and could not be removed", path.display());
    }
    for name in kept(&args.model, &args.to) {
        let (kept, other) = (args.to.join(&name), args.model.join(&name));
        eprintln!(
            "warning: `{}` was there before and was kept: it is not the same as `{}`",
            kept.display(),
            other.display()
        );
    }

    let mut text = String::from("burnlens convert\n\n");
    text += &field("from", format!("{} ({})", shown(&args.model).display(), model.class_name()));
    text += &field("to", shown(&args.to).display().to_string());
    text += &field("weights", format!("{}, {}", count(saved.tensors, "tensor"), bytes(saved.bytes)));
    for (changed, written) in [(&loaded.converted, "loaded"), (&saved.converted, "written")] {
        if !changed.is_empty() {
            let sources: usize = changed.iter().map(|key| key.sources.len()).sum();
            let targets: usize = changed.iter().map(|key| key.targets.len()).sum();
            text += &field(written, format!("{} as {}", count(sources, "tensor"), count(targets, "tensor")));
        }
    }
    text += &field("files", saved.files.join("\n             "));
    if let Some(tied) = saved.tied.first() {
        let others = saved.tied.len() - 1;
        let more = if others > 0 { format!(", and {others} more") } else { String::new() };
        text += &field("tied", format!("{} to {}, so it is left out{more}", tied.key, tied.source));
    }
    Ok(text)
}

/// The files that saving found in `to` and kept, although those in `from` are others: all that are in both folders
/// and differ, except the config and weights, which saving writes.
fn kept(from: &Path, to: &Path) -> Vec<String> {
    let is_written = |name: &str| {
        name == CONFIG || name.starts_with('.') || name.ends_with(".safetensors") || name.ends_with(".index.json")
    };
    let differ = |name: &String| {
        let (one, other) = (from.join(name), to.join(name));
        one.is_file() && other.is_file() && same_content(&one, &other).is_ok_and(|same| !same)
    };
    let files = std::fs::read_dir(to).into_iter().flatten().flatten();
    let names = files.filter_map(|file| file.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| !is_written(name)).filter(differ).collect();
    names.sort();
    names
}

/// Says what will be missing from the new checkpoint, and what was changed unasked.
fn warn(report: &LoadReport) {
    for key in &report.unexpected {
        eprintln!("warning: the class has no place for `{key}`: it is not in the new checkpoint");
    }
    for cast in &report.casts {
        eprintln!("warning: `{}` was {:?} and is now {:?}: {}", cast.key, cast.from, cast.to, cast.reason);
    }
}
