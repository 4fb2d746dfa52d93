//! `burnlens capture`: runs a model once and tells what it computed inside.

mod attention;
mod generation;
mod json;
mod memory;
mod record;
mod save;
mod summary;

use super::args::{CaptureArgs, Dtype, RequestArgs};
use super::backend::{self, Chosen};
use super::error::CliError;
use super::files::write_text;
use super::inputs::Given;
use super::model::{Implementations, Source};
use burn::tensor::{DType, Device};
use burnlens::burn_models::auto::AnyModel;
use burnlens::patching_core::capture::{CapturePlan, ForwardKwargs, PlannedKey};
use burnlens::patching_core::weights::LoadReport;
use generation::Generated;
use record::Recorded;
use save::Saved;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// All that a summary tells.
struct Run<'a> {
    args: &'a CaptureArgs,
    source: Source,
    model: AnyModel,
    loaded: LoadReport,
    chosen: Chosen,
    given: Given,
    plan: CapturePlan,
    recorded: Recorded,
    generated: Option<Generated>,
    times: Times,
    files: Vec<PathBuf>,
}

/// How long each part took.
#[derive(Clone, Copy, Default)]
struct Times {
    load: Duration,
    forward: Duration,
    generate: Option<Duration>,
}

/// What the arguments of `command` ask of a forward pass. A key twice is wrong usage: the second would win unsaid.
pub(crate) fn kwargs(command: &'static str, args: &RequestArgs) -> Result<ForwardKwargs, CliError> {
    let mut kwargs = ForwardKwargs::new().use_cache(args.use_cache);
    for (at, request) in args.outputs.iter().enumerate() {
        let key = request.key.as_str();
        if args.outputs.iter().take(at).any(|earlier| earlier.key == key) {
            let problem =
                format!("`--output {key}` is given twice: name all positions in one, such as `--output {key}=0,1`");
            return Err(CliError::Usage { command, problem });
        }
        kwargs = kwargs.output(key, request.flag.clone());
    }
    Ok(kwargs)
}

/// The element type that a model is loaded in: the one asked for, unless `device` does not compute in it.
fn computed_in(asked: Dtype, device: &Device) -> DType {
    let asked = DType::from(asked.float());
    if device.supports_dtype(asked) { asked } else { DType::F32 }
}

pub(crate) fn run(args: &CaptureArgs) -> Result<String, CliError> {
    let kwargs = kwargs("capture", &args.request)?;
    let chosen = backend::choose(args.backend)?;
    let source = Source::of(&args.model)?;
    let given = Given::read(&args.input, &source)?.ok_or(CliError::Usage {
        command: "capture",
        problem: "an input is needed: `--inputs FILE`, `--ids 1,2,3` or `--text TEXT`".to_owned(),
    })?;

    let start = Instant::now();
    let (model, loaded) = source.load(&chosen.device, Some(args.dtype), Implementations::of(&args.model))?;
    let mut times = Times { load: start.elapsed(), ..Times::default() };

    let given = given.suited(&model, computed_in(args.dtype, &chosen.device));
    let plan = model.capture_plan(&kwargs)?;
    let start = Instant::now();
    // Reading the values back is part of it: some devices compute only when somebody looks.
    let recorded = Recorded::of(&model.forward(&given.tensors, &chosen.device, &kwargs)?);
    times.forward = start.elapsed();

    let generated = match args.generate {
        Some(tokens) => {
            let start = Instant::now();
            // Without `--steps` nothing is recorded, also not what the config asks for: it would be held for every step.
            let off = |kwargs: ForwardKwargs, key: &PlannedKey| kwargs.output(key.key(), false);
            let kwargs = if args.steps { kwargs } else { plan.keys().iter().fold(kwargs, off) };
            let generated = generation::run(&model, &source, &given, &chosen.device, &kwargs, args, tokens)?;
            times.generate = Some(start.elapsed());
            Some(generated)
        }
        None => None,
    };

    let mut run =
        Run { args, source, model, loaded, chosen, given, plan, recorded, generated, times, files: Vec::new() };
    run.write_files()?;
    if args.json { json::render(&run) } else { Ok(summary::render(&run)) }
}

impl Run<'_> {
    /// Writes what `--save` and `--meta` name.
    fn write_files(&mut self) -> Result<(), CliError> {
        if let Some(path) = &self.args.save {
            let mut tensors = self.recorded.values.iter().map(Saved::of).collect::<Result<Vec<_>, _>>()?;
            if let Some(generated) = &self.generated {
                tensors.extend(generated.saved()?);
            }
            save::write(path, &tensors)?;
            self.files.push(path.clone());
        }
        if let Some(path) = &self.args.meta {
            let meta = serde_json::json!({
                "tuple_order": self.recorded.tuple_order,
                "entries": self.recorded.entries,
            });
            write_text(path, &(serde_json::to_string_pretty(&meta)? + "\n"))?;
            self.files.push(path.clone());
        }
        Ok(())
    }
}
