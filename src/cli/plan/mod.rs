//! `burnlens plan`: what would be recorded. Loads no weights and computes nothing.

mod shapes;

use super::args::{Backend, PlanArgs};
use super::backend::{self, Chosen};
use super::capture::kwargs;
use super::error::CliError;
use super::files::shown;
use super::inputs::Given;
use super::model::{self, Implementations, Source};
use super::text::{Side, Table, amount, bytes, field, shape};
use burn::tensor::DType;
use burnlens::burn_models::auto::AnyModel;
use burnlens::patching_core::capture::{CapturePlan, PlannedValue};
use burnlens::patching_core::patch::get_patch_mapping;
use serde_json::{Value as Json, json};
use shapes::{Shape, Shapes};

/// The length to plan for if nothing is said.
const LENGTH: usize = 128;

struct Planned {
    source: Source,
    model: AnyModel,
    given: Given,
    plan: CapturePlan,
    shapes: Option<Shapes>,
    dtype: String,
    /// What a run would compute on if nothing else is said.
    backend: Backend,
}

pub(crate) fn run(args: &PlanArgs) -> Result<String, CliError> {
    let kwargs = kwargs("plan", &args.request)?;
    let source = Source::of(&args.model)?;
    let given = match args.length {
        Some(_) => None,
        None => Given::read(&args.input, &source)?,
    };
    let implementations = Implementations::of(&args.model);
    let Chosen { backend, device } = backend::choose(None)?;
    let model = source.describe(&device, implementations)?;
    let given = given.unwrap_or_else(|| Given::any(args.length.unwrap_or(LENGTH), &model));
    // What is planned on computes nothing, in the device's default type.
    let given = given.suited(&model, DType::F32);
    let plan = model.capture_plan(&kwargs)?;
    let shapes = shapes::of(&source, implementations, args.dtype, &given, &kwargs)?;
    let dtype = format!("{:?}", args.dtype).to_lowercase();
    let planned = Planned { source, model, given, plan, shapes, dtype, backend };
    if args.json { planned.json() } else { Ok(planned.render()) }
}

impl Planned {
    fn shape(&self, key: &str, position: usize) -> Option<&Shape> {
        self.shapes.as_ref()?.get(key)?.get(&position)
    }

    fn render(&self) -> String {
        let mut text = String::from("burnlens plan (nothing was loaded or computed)\n\n");
        let class = self.model.class_name();
        text += &field("model", format!("{class}, {} parameters", amount(self.model.num_params())));
        text += &field("from", shown(&self.source.dir).display().to_string());
        text += &field("input", format!("{}: {}", self.given.origin, self.given.shapes()));
        text += &field("dtype", &self.dtype);
        text += "\n";
        if self.plan.keys().is_empty() {
            text += "  Nothing would be recorded: neither `--output` nor the config asks for anything.\n";
            text += &format!("  {class} can record {}.\n", self.model.recordable_keys().join(", "));
        } else {
            text += &self.table().render(2);
            text += "\n";
            text += &self.totals();
        }
        text += &field("attention", model::attention_in_words(&self.model, &self.plan, self.backend));
        if let Some(experts) = self.model.experts_implementation() {
            text += &field("experts", experts);
        }
        text += &field("patches", self.patches());
        text
    }

    /// What registered patches do, in words.
    fn patches(&self) -> String {
        let registered = get_patch_mapping();
        if registered.is_empty() {
            return "none are registered".to_owned();
        }
        self.model.patch_report(&registered).to_string().replace('\n', "\n             ")
    }

    fn table(&self) -> Table {
        use Side::{Left, Right};
        let mut table = Table::new(&[
            ("key", Left),
            ("layer", Right),
            ("module", Left),
            ("class", Left),
            ("shape", Left),
            ("size", Right),
        ]);
        for key in self.plan.keys() {
            for value in key.values().filter(|value| value.is_kept) {
                let PlannedValue { position, path, class, is_input, .. } = value;
                let found = self.shape(key.key(), position);
                table.row([
                    key.key().to_owned(),
                    position.to_string(),
                    if is_input { format!("{path} (input)") } else { path.to_owned() },
                    class.to_owned(),
                    found.map_or_else(String::new, |found| shape(&found.dims)),
                    found.map_or_else(String::new, |found| bytes(found.bytes)),
                ]);
            }
        }
        table
    }

    fn totals(&self) -> String {
        let totals = self.plan.keys().iter().map(|key| {
            let kept: Vec<usize> = key.values().filter(|value| value.is_kept).map(|value| value.position).collect();
            let sizes: Option<Vec<u64>> =
                kept.iter().map(|position| self.shape(key.key(), *position).map(|found| found.bytes)).collect();
            let size = sizes.map_or_else(String::new, |sizes| format!(", {}", bytes(sizes.iter().sum())));
            format!("{} {} of {}{size}", key.key(), kept.len(), key.len())
        });
        let mut text = field("kept", totals.collect::<Vec<_>>().join("; "));
        if self.shapes.is_none() {
            text += &field("shapes", "not built in: build with `--features capture`");
        }
        text
    }

    fn json(&self) -> Result<String, CliError> {
        let inputs: serde_json::Map<_, _> =
            self.given.tensors.iter().map(|(name, data)| (name.to_owned(), json!(data.shape().to_vec()))).collect();
        let keys = self.plan.keys().iter().map(|key| {
            let values = key.values().filter(|value| value.is_kept).map(|value| {
                let found = self.shape(key.key(), value.position);
                json!({
                    "layer": value.position,
                    "module": value.path,
                    "is_input": value.is_input,
                    "class": value.class,
                    "implementation": value.implementation,
                    "shape": found.map(|found| &found.dims),
                    "bytes": found.map(|found| found.bytes),
                })
            });
            json!({ "key": key.key(), "length": key.len(), "values": values.collect::<Vec<Json>>() })
        });
        let patches = self.model.patch_report(&get_patch_mapping());
        let plan = json!({
            "model": self.source.dir,
            "class": self.model.class_name(),
            "family": self.model.model_type(),
            "parameters": self.model.num_params(),
            "dtype": self.dtype,
            "attn_implementation": model::attention(&self.model),
            "experts_implementation": self.model.experts_implementation(),
            "input": { "from": self.given.origin, "shapes": inputs },
            "recordable": self.model.recordable_keys(),
            "keys": keys.collect::<Vec<Json>>(),
            "attention": model::attention_in_words(&self.model, &self.plan, self.backend),
            "leave_fused_attention": model::leave_fused(&self.model, &self.plan, self.backend),
            "patches": {
                "applied": patches.replaced.iter().map(|slot| json!({
                    "key": slot.key, "module": slot.path, "from": slot.from, "to": slot.to,
                })).collect::<Vec<Json>>(),
                "matched_nothing": patches.unmatched.iter().map(|unmatched| &unmatched.key).collect::<Vec<_>>(),
            },
        });
        Ok(serde_json::to_string_pretty(&plan)? + "\n")
    }
}
