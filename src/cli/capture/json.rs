//! The summary for programs.

use super::attention::Weights;
use super::memory;
use super::summary::{all_heads, next_token};
use super::{Run, computed_in};
use crate::cli::error::CliError;
use crate::cli::model;
use serde_json::{Value as Json, json};

pub(super) fn render(run: &Run<'_>) -> Result<String, CliError> {
    let inputs: serde_json::Map<_, _> =
        run.given.tensors.iter().map(|(name, data)| (name.to_owned(), json!(data.shape().to_vec()))).collect();
    let rows = run.recorded.values.iter().map(|value| {
        let (layer, path) = match &value.recorded {
            Some((layer, path)) => (json!(layer), json!(path)),
            None => (Json::Null, Json::Null),
        };
        let mut row = json!({
            "name": value.name,
            "key": value.key,
            "layer": layer,
            "module": path,
            "shape": value.shape(),
            "norm": value.norm(),
        });
        if let (Some(weights), Some(fields)) = (Weights::of(value), row.as_object_mut()) {
            fields.insert("entropy_bits".to_owned(), json!(weights.entropy()));
            if let Some((position, weight)) = weights.most_attended(run.given.read_by(&value.key)) {
                fields.insert("most_attended".to_owned(), json!({ "position": position, "weight": weight }));
            }
        }
        row
    });
    let generated = run.generated.as_ref().map(|generated| {
        json!({
            "generated_ids": generated.added,
            "sequences": generated.sequences,
            "text": generated.added.iter().map(|row| run.given.decode(row)).collect::<Vec<_>>(),
            "recorded_steps": generated.steps.len(),
        })
    });
    let summary = json!({
        "model": run.source.dir,
        "class": run.model.class_name(),
        "family": run.model.model_type(),
        "parameters": run.model.num_params(),
        "backend": run.chosen.backend.to_string(),
        "dtype": format!("{:?}", computed_in(run.args.dtype, &run.chosen.device)).to_lowercase(),
        "attn_implementation": model::attention(&run.model),
        "experts_implementation": run.model.experts_implementation(),
        "attention": model::attention_in_words(&run.model, &run.plan, run.chosen.backend),
        "leave_fused_attention": model::leave_fused(&run.model, &run.plan, run.chosen.backend),
        "input": { "from": run.given.origin, "shapes": inputs },
        "tuple_order": run.recorded.tuple_order,
        "entries": run.recorded.entries,
        "rows": rows.collect::<Vec<_>>(),
        "heads": all_heads(run),
        "next_token": next_token(run).map(|(id, probability)| json!({ "id": id, "probability": probability })),
        "generated": generated,
        "unused_weights": run.loaded.unexpected,
        "seconds": {
            "load": run.times.load.as_secs_f64(),
            "forward": run.times.forward.as_secs_f64(),
            "generate": run.times.generate.map(|time| time.as_secs_f64()),
        },
        "peak_memory_bytes": memory::peak(),
        "files": run.files,
    });
    Ok(serde_json::to_string_pretty(&summary)? + "\n")
}
